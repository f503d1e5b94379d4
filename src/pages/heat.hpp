// SPDX-License-Identifier: Apache-2.0
// Heat is how hot one part is: the moving average of 002 eq. 8.2, in three bytes.
//
// Time is counted in rounds. Within a round references are counted, at most fifteen of them; with a new round
// the count enters the average by half, and a part that nobody looked at in between cools by halves. The
// average is brought up to date when somebody asks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace terrace::pages {

class Heat {
 public:
  static constexpr unsigned kOne = 16;  ///< one reference a round, for good
  static constexpr unsigned kMostReferences = 15;
  static constexpr unsigned kMost = kMostReferences * kOne;

  void reference(std::uint16_t now, unsigned times = 1) {
    catch_up(now);
    set(std::min(references() + times, kMostReferences), round());
  }
  /// The average if the round ended now.
  unsigned value(std::uint16_t now) const {
    Heat later = *this;
    later.catch_up(now);
    return (later.references() * kOne + later.average_) / 2;
  }

 private:
  static constexpr unsigned kRounds = 1 << 12;  // after so many a part that nobody looked at may seem new

  unsigned references() const { return high_ >> 4; }
  unsigned round() const { return (high_ & 15U) << 8 | low_; }
  void set(unsigned references, unsigned round) {
    high_ = static_cast<std::uint8_t>(references << 4 | round >> 8);
    low_ = static_cast<std::uint8_t>(round & 255);
  }
  void catch_up(std::uint16_t now) {
    const unsigned passed = (now - round()) % kRounds;
    if (passed == 0) return;
    average_ = static_cast<std::uint8_t>((references() * kOne + average_) / 2);
    average_ = passed > 8 ? std::uint8_t{0} : static_cast<std::uint8_t>(average_ >> (passed - 1));
    set(0, now % kRounds);
  }

  std::uint8_t average_ = 0;         // in units of 1 / kOne, up to the round before the last one looked at
  std::uint8_t high_ = 0, low_ = 0;  // references in that round (four bits), and its number
};
static_assert(sizeof(Heat) == 3);

}  // namespace terrace::pages
