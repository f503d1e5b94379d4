// SPDX-License-Identifier: Apache-2.0
// FakeMemory: the memory of a fake device, and the host memory that is pinned for it.
//
// An allocation is mapped twice: the addresses handed out allow no access, so that a host that dereferences
// one dies at once; what only the device knows holds the bytes. Not thread-safe, but for inside().
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "tiers/fake_order.hpp"
#include "tiers/mapping.hpp"

namespace terrace {

class FakeMemory {
 public:
  /// Returns the addresses of so many bytes. Throws EnvironmentError where the system has no room.
  FakeRange allocate(std::size_t bytes);
  void free(const FakeRange& range);
  void pin(const FakeRange& range) { pins_.push_back(range); }
  void unpin(const FakeRange& range);

  bool is_pinned(const FakeRange& range) const;
  bool is_allocated(std::uint64_t address) const { return find(address) != nullptr; }
  /// Returns whether an operation may use it.
  bool reaches(const FakeRange& range) const;
  /// Returns where the bytes of an address are: the hidden mapping's, or the address itself if it is the
  /// host's.
  std::byte* inside(std::uint64_t address) const;

  std::uint64_t hash(const FakeRange& range) const;
  void fill_with_rubbish(const FakeRange& range) const;

 private:
  struct Allocation {
    Mapping outside, inside;
    FakeRange range() const;
  };
  const Allocation* find(std::uint64_t address) const;

  std::list<Allocation> allocations_;
  std::vector<FakeRange> pins_;
};

}  // namespace terrace
