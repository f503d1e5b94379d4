// SPDX-License-Identifier: Apache-2.0
// Reads bytes as operations on a small heap, callbacks included, and validates after each.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "terrace/heap.hpp"

namespace terrace {
namespace {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : *at_++; }
  std::uint64_t word() { return static_cast<std::uint64_t>(byte()) << 8 | byte(); }

 private:
  const std::uint8_t *at_, *end_;
};

// The fuzzer takes a trap for a finding.
void require(bool holds) {
  if (!holds) __builtin_trap();
}

class Session {
 public:
  explicit Session(Input input) : input_(input), heap_({(input_.word() + 1) * 64}, {64}) {}

  void run() {
    while (!input_.empty()) {
      step();
      require(heap_.validate().ok());
      require(heap_.statistics().blocks_used == live_.size());
    }
  }

 private:
  void step() {
    switch (input_.byte() % 8) {
      case 0:
        return evict();
      case 1:
        return compact();
      case 2:
      case 3:
      case 4:
        return release(pick());
      default:
        return allocate();
    }
  }

  Slot pick() { return live_.empty() ? Slot{} : live_[input_.byte() % live_.size()]; }

  void allocate() {
    const Bytes size{input_.word() * 16};
    const Bytes alignment{std::uint64_t{1} << input_.byte() % 24};
    const auto slot = heap_.allocate(size, alignment, ++names_);
    if (!slot) return;
    require(heap_.offset(*slot) % alignment.count == 0 && heap_.size(*slot) >= size);
    live_.push_back(*slot);
  }

  void release(Slot slot) {
    const auto found = std::find(live_.begin(), live_.end(), slot);
    if (found == live_.end()) return;
    heap_.free(slot);
    live_.erase(found);
  }

  void evict() {
    if (live_.empty()) return;
    const Slot start = pick();
    const Bytes size{input_.word() * 64};
    const auto hole = heap_.evict_from(start, size, [&](Slot slot) {
      const std::uint8_t choice = input_.byte();
      if (choice % 4 == 0) return false;
      if (choice % 8 == 1) allocate();
      release(slot);
      if (choice % 8 == 2) allocate();
      if (choice % 8 == 3) release(pick());
      if (choice % 16 == 5) compact();
      return true;
    });
    if (!hole) return;
    const auto made = heap_.allocate(size);
    require(*hole >= size && made.ok());
    heap_.free(*made);
  }

  void compact() {
    heap_.compact([&](Slot slot, std::uint64_t from, std::uint64_t to, Bytes size) {
      require(to < from && heap_.offset(slot) == from && heap_.size(slot) == size);
      const std::uint8_t choice = input_.byte();
      if (choice % 8 == 1) release(pick());
      if (choice % 8 == 2) release(slot);
      return choice % 8 != 3;
    });
  }

  Input input_;
  Heap heap_;
  std::vector<Slot> live_;
  std::uint64_t names_ = 0;
};

}  // namespace
}  // namespace terrace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  terrace::Session(terrace::Input(data, size)).run();
  return 0;
}
