// SPDX-License-Identifier: Apache-2.0
// FirstWrites learns, for each area of 64 MiB, whether pages that are fetched for reading are written before
// they leave. Where they usually are, they come writable and save a second fault; elsewhere they come
// write-protected, so that they can leave without being written to the disk.
//
// It learns from pages that came write-protected; one fetch in sixteen brings such pages even where they are
// expected to be written. It is plain data without a clock; the pager's lock guards it.
#pragma once

#include <array>
#include <cstdint>

#include "pages/geometry.hpp"

namespace terrace::pages {

class FirstWrites {
 public:
  /// Returns whether what is about to be fetched here should come writable.
  bool expected(Address part) { return score(part) >= kWorth && ++fetches_ % kProbeEvery != 0; }
  /// A page that had come write-protected is written.
  void written(Address part) {
    score(part) = static_cast<std::uint8_t>(score(part) + (255 - score(part) + 7) / 8);
  }
  /// A part leaves unwritten.
  void left_clean(Address part) {
    score(part) = static_cast<std::uint8_t>(score(part) - (score(part) + 7) / 8);
  }

 private:
  static constexpr unsigned kProbeEvery = 16;
  static constexpr std::uint8_t kWorth = 128;  // of 255: half of them

  std::uint8_t& score(Address part) { return scores_[area_number(part)]; }

  std::array<std::uint8_t, kAreas> scores_{};
  std::uint32_t fetches_ = 0;
};

}  // namespace terrace::pages
