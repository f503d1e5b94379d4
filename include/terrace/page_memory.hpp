// PageMemory is zeroed memory of whole pages for one tensor, so that protecting its pages affects that tensor
// alone. It is held while in scope. It is meant for profiling (access_profile.hpp), because small tensors
// grow to a page.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "terrace/bytes.hpp"

namespace terrace {

class PageMemory {
 public:
  /// Throws EnvironmentError where the system has no such memory. pre: size > 0
  explicit PageMemory(Bytes size);
  PageMemory(PageMemory&& other) noexcept
      : pages_(std::exchange(other.pages_, {})), size_(std::exchange(other.size_, {})) {}
  PageMemory& operator=(PageMemory&& other) noexcept {
    std::swap(pages_, other.pages_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~PageMemory();

  Bytes size() const { return size_; }
  /// Returns all of its pages, including the unused rest of the last one.
  std::span<std::byte> pages() const { return pages_; }
  /// Returns as many elements as fit into size().
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(pages_.data()), static_cast<std::size_t>(size_.count) / sizeof(T)};
  }

 private:
  std::span<std::byte> pages_;
  Bytes size_;
};

}  // namespace terrace
