// SPDX-License-Identifier: Apache-2.0
// A store in memory that keeps pages compressed: a tier between fast memory and a disk, because unpacking a
// page takes microseconds where a disk takes sixty.
//
// Each page is packed by itself, so that a fault unpacks no more than it wants. Packed pages lie in blocks of
// equal size, and blocks in spans of 64 KiB; a page that is one word over and over takes no block. It is
// worth its memory only for pages that become small: where most do not, nearly_full() says so, and pages go
// to the next store, but for one part in many that looks whether that has changed.
#pragma once

#include <memory>

#include "pages/store.hpp"

namespace terrace::pages {

/// Returns whether this library was built with LZ4.
bool can_compress();
/// `room` bounds the memory for packed pages. Returns nothing where the library was built without LZ4. Throws
/// EnvironmentError where addresses are refused.
std::unique_ptr<Store> compressed_store(Bytes room);

}  // namespace terrace::pages
