// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a graph is refused with a sentence, or is a valid graph whose own text means the
// same.
#include <cstdint>

#include "fuzz/round_trip.hpp"
#include "graph/passes.hpp"
#include "terrace/graph_json.hpp"
#include "terrace/lifetimes.hpp"

using terrace::testing::require, terrace::testing::round_trip;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto graph = round_trip(data, size, terrace::graph_from_json,
                                [](const auto& made) { return terrace::to_json_text(made); });
  if (!graph) return 0;
  require(terrace::validate(*graph).ok());
  const terrace::Bytes peak = terrace::Lifetimes(*graph).peak_bytes();
  const terrace::Graph shared = terrace::share_in_place(*graph), scheduled = terrace::schedule(shared);
  require(terrace::validate(shared).ok() && terrace::validate(scheduled).ok());
  require(terrace::Lifetimes(shared).peak_bytes() <= peak);
  require(terrace::Lifetimes(scheduled).peak_bytes() <= peak);
  return 0;
}
