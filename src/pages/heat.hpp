// SPDX-License-Identifier: Apache-2.0
// Heat is how hot one part is: the moving average of 002 eq. 8.2, in four bytes.
//
// Time is counted in rounds. Within a round references are counted, at most fifteen of them; with a new round
// the count enters the average by half, and a part that nobody looked at in between cools by halves. The
// average is brought up to date when somebody asks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace terrace::pages {

struct Heat {
  static constexpr unsigned kOne = 16;  ///< one reference a round, for good
  static constexpr unsigned kMostReferences = 15;
  static constexpr unsigned kMost = kMostReferences * kOne;

  std::uint8_t average = 0;     ///< in units of 1 / kOne, up to the round before `round`
  std::uint8_t references = 0;  ///< in `round`
  std::uint16_t round = 0;

  void reference(std::uint16_t now, unsigned times = 1) {
    catch_up(now);
    references = static_cast<std::uint8_t>(std::min(references + times, kMostReferences));
  }
  /// The average if the round ended now.
  unsigned value(std::uint16_t now) const {
    Heat later = *this;
    later.catch_up(now);
    return (later.references * kOne + later.average) / 2;
  }

 private:
  void catch_up(std::uint16_t now) {
    const auto passed = static_cast<std::uint16_t>(now - round);
    if (passed == 0) return;
    average = static_cast<std::uint8_t>((references * kOne + average) / 2);
    average = passed > 8 ? std::uint8_t{0} : static_cast<std::uint8_t>(average >> (passed - 1));
    references = 0;
    round = now;
  }
};
static_assert(sizeof(Heat) == 4);

}  // namespace terrace::pages
