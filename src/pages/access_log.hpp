// SPDX-License-Identifier: Apache-2.0
// The access log keeps the faults of a program until somebody writes them to a trace (docs/formats/trace.md).
// It is two arrays: one is filled while the other one is read. Where nobody reads it in time the latest
// faults are counted and forgotten. The pager's lock guards it; what take() returned is the reader's until
// the next take().
#pragma once

#include <span>
#include <utility>

#include "pages/geometry.hpp"
#include "pages/reserved.hpp"

namespace terrace::pages {

class AccessLog {
 public:
  AccessLog() : one_(kMost, "the log of faults"), other_(kMost, "the log of faults") {}

  /// The lowest bit of an entry tells a write.
  void note(Address part, bool write) {
    if (count_ == kMost)
      ++forgotten_;
    else
      (*filling_)[count_++] = part_start(part) | Address{write};
  }
  std::span<Address> take() {
    const std::span<Address> taken{filling_->data(), count_};
    filling_ = filling_ == &one_ ? &other_ : &one_;
    count_ = 0;
    return taken;
  }
  std::uint64_t forgotten() const { return forgotten_; }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 20;
  Reserved<Address> one_, other_;
  Reserved<Address>* filling_ = &one_;
  std::size_t count_ = 0;
  std::uint64_t forgotten_ = 0;
};

}  // namespace terrace::pages
