// SPDX-License-Identifier: Apache-2.0
// A store on a disk: a file without a name that only this user can read, and that is gone with its last
// process however that ends. Its space is taken step by step, because a program's footprint is not known
// before it runs. It depends on little, so that it can live inside any program.
#pragma once

#include "pages/store.hpp"

namespace terrace::pages {

struct FileStoreSpec {
  std::string name;  ///< for messages
  std::string path;  ///< a folder, or a file in the folder that is meant
  Bytes capacity;
  bool buffered = false;  ///< accept the page cache where direct I/O is refused
};

/// Fails with one sentence where the folder cannot be used.
Result<std::unique_ptr<Store>> open_file_store(const FileStoreSpec& spec);

/// The same store with contents that only this process can read: the key is drawn at random and never leaves
/// its memory. Returns nothing where the system has no random numbers.
std::unique_ptr<Store> encrypted(std::unique_ptr<Store> store);

}  // namespace terrace::pages
