// SPDX-License-Identifier: Apache-2.0
#include "terrace/page_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "base/check.hpp"
#include "terrace/error.hpp"
#include "tiers/mapping.hpp"

namespace terrace {

PageMemory::PageMemory(Bytes size) : size_(size) {
  check(size > Bytes{}, "memory has a size");
  const Bytes whole = round_up(size, page_size());
  void* const start = mmap(nullptr, whole.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {
    const int cause = errno;
    throw EnvironmentError(fmt::format("the system refused {} of memory in pages of its own ({}): ask for "
                                       "less, or free some",
                                       readable(whole), std::generic_category().message(cause)),
                           {"", "", 0, cause});
  }
  pages_ = {static_cast<std::byte*>(start), static_cast<std::size_t>(whole.count)};
}

PageMemory::~PageMemory() {
  if (!pages_.empty()) munmap(pages_.data(), pages_.size());
}

}  // namespace terrace
