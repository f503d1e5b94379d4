// SPDX-License-Identifier: Apache-2.0
// Descriptors of the library that `terrace run` loads. A program that closes everything, or puts another file
// in a descriptor's place, must not reach them: its memory would be lost, or written to that file.
//
// Any thread may call these at any time.
#pragma once

namespace terrace::pages {

bool is_ours(unsigned descriptor);
/// From now on this descriptor is the library's, or no longer. One that is not open is ignored.
void mark(int descriptor, bool mine);

// What close(), dup3() and close_range() do with the descriptors that are not ours.
int plain_close(int descriptor);
int copy_onto(int from, int to, int flags);
int close_all(unsigned first, unsigned last, int flags);

}  // namespace terrace::pages
