// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a record is refused with a sentence, or is a record whose own text means the same
// and on whose plan the verifier passes judgement.
#include <cstdint>

#include "fuzz/round_trip.hpp"
#include "terrace/record.hpp"
#include "terrace/verify.hpp"

using terrace::testing::require, terrace::testing::round_trip;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto record = round_trip(data, size, terrace::record_from_json,
                                 [](const auto& made) { return terrace::to_json(made); });
  if (!record) return 0;
  if (!record->plan) return 0;
  for (const auto& violation : terrace::violations(record->graph, record->machine, *record->plan)) {
    require(!to_text(violation, record->graph, record->machine, *record->plan).empty());
  }
  return 0;
}
