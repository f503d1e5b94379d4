// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a plan is refused with a sentence, or is a plan whose own text means the same and
// on which the verifier passes judgement.
#include <cstdint>

#include "fuzz/round_trip.hpp"
#include "terrace/verify.hpp"
#include "verify/hand_made.hpp"

using terrace::testing::require, terrace::testing::round_trip;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = round_trip(data, size, terrace::plan_from_json,
                               [](const auto& made) { return terrace::to_json(made); });
  if (!plan) return 0;
  terrace::testing::HandMade it;
  it.machine.further_engines = {{{"beside", 1, 1e9, {}}, {{0}, {1}}}};
  for (const auto& violation : terrace::violations(it.graph, it.machine, *plan)) {
    require(!to_text(violation, it.graph, it.machine, *plan).empty());
  }
  return 0;
}
