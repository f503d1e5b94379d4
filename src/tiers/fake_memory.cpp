// SPDX-License-Identifier: Apache-2.0
#include "tiers/fake_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

#include "base/check.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

constexpr int kRubbish = 0xDB;

Mapping map_shared(int file, std::size_t bytes, int access) {
  void* const start = mmap(nullptr, bytes, access, MAP_SHARED, file, 0);
  if (start == MAP_FAILED) {
    const int cause = errno;
    throw EnvironmentError(fmt::format("a fake device cannot map {} ({}): ask for less",
                                       readable(Bytes{bytes}), std::strerror(cause)),
                           {"fake", {}, 0, cause});
  }
  return {start, bytes};
}

}  // namespace

FakeRange FakeMemory::Allocation::range() const {
  const auto begin = reinterpret_cast<std::uint64_t>(outside.data());
  return {begin, begin + outside.size()};
}

FakeRange FakeMemory::allocate(std::size_t bytes) {
  const int file = memfd_create("terrace-fake-device", MFD_CLOEXEC);
  check(file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0, "a fake device gets its memory");
  Allocation allocation;
  allocation.outside = map_shared(file, bytes, PROT_NONE);
  allocation.inside = map_shared(file, bytes, PROT_READ | PROT_WRITE);
  close(file);
  allocations_.push_back(std::move(allocation));
  return allocations_.back().range();
}

void FakeMemory::free(const FakeRange& range) {
  allocations_.remove_if([&](const Allocation& mine) { return mine.range().begin == range.begin; });
}

void FakeMemory::unpin(const FakeRange& range) {
  const auto mine = std::find_if(pins_.begin(), pins_.end(),
                                 [&](const FakeRange& other) { return other.begin == range.begin; });
  if (mine != pins_.end()) pins_.erase(mine);
}

bool FakeMemory::is_pinned(const FakeRange& range) const {
  return std::any_of(pins_.begin(), pins_.end(),
                     [&](const FakeRange& pin) { return pin.begin <= range.begin && range.end <= pin.end; });
}

bool FakeMemory::reaches(const FakeRange& range) const {
  if (range.begin == range.end) return true;
  const Allocation* const allocation = find(range.begin);
  return allocation != nullptr ? range.end <= allocation->range().end : is_pinned(range);
}

const FakeMemory::Allocation* FakeMemory::find(std::uint64_t address) const {
  const auto found = std::find_if(allocations_.begin(), allocations_.end(), [&](const Allocation& mine) {
    return overlap(mine.range(), {address, address + 1});
  });
  return found == allocations_.end() ? nullptr : &*found;
}

std::byte* FakeMemory::inside(std::uint64_t address) const {
  const Allocation* const allocation = find(address);
  if (allocation == nullptr) return reinterpret_cast<std::byte*>(address);
  return allocation->inside.data() + (address - allocation->range().begin);
}

std::uint64_t FakeMemory::hash(const FakeRange& range) const {
  const auto* const bytes = reinterpret_cast<const char*>(inside(range.begin));
  return std::hash<std::string_view>{}({bytes, range.end - range.begin});
}

void FakeMemory::fill_with_rubbish(const FakeRange& range) const {
  std::memset(inside(range.begin), kRubbish, range.end - range.begin);
}

}  // namespace terrace
