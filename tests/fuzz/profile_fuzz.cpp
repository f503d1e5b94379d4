// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a profile is refused with a sentence, or is a profile whose own text means the
// same and of which can be said whether it fits a graph.
#include <cstdint>

#include "fuzz/round_trip.hpp"
#include "terrace/profile_json.hpp"
#include "verify/hand_made.hpp"

using terrace::testing::require, terrace::testing::round_trip;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto profile = round_trip(data, size, terrace::profile_from_json,
                                  [](const auto& made) { return terrace::to_json(made); });
  if (!profile) return 0;
  const terrace::testing::HandMade it;
  const auto fits = validate(*profile, it.graph, it.machine);
  require(fits.ok() || !fits.error().message.empty());
  return 0;
}
