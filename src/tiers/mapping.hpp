// A Mapping owns a range of mapped memory, which is unmapped when it goes out of scope.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "terrace/bytes.hpp"

namespace terrace {

constexpr Bytes kHugePage{2u << 20};
/// Returns the size of the system's ordinary pages.
Bytes page_size();

class Mapping {
 public:
  Mapping() = default;
  /// Takes ownership of a mapping made by mmap.
  Mapping(void* start, std::size_t bytes) : start_(static_cast<std::byte*>(start)), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    Mapping(std::move(other)).swap(*this);
    return *this;
  }
  ~Mapping();

  std::byte* data() const noexcept { return start_; }
  std::size_t size() const noexcept { return bytes_; }
  std::span<std::byte> bytes() const noexcept { return {start_, bytes_}; }

 private:
  void swap(Mapping& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
  }
  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Maps anonymous memory, aligned to 2 MiB, without touching it. `name` is the tier's and appears in the
/// EnvironmentError that is thrown when the system refuses.
Mapping map_anonymous(Bytes size, const std::string& name);

/// Pre-touches every page with several threads. Throws EnvironmentError where the system has no memory left.
void populate(const Mapping& mapping, const std::string& name);

}  // namespace terrace
