// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a plan is refused with a sentence, or is a plan whose own text means the same and
// on which the verifier passes judgement.
#include <cstdint>
#include <cstdlib>

#include "terrace/verify.hpp"
#include "verify/hand_made.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = terrace::plan_from_json({reinterpret_cast<const char*>(data), size});
  if (!plan) {
    require(!plan.error().message.empty());
    return 0;
  }
  const auto again = terrace::plan_from_json(terrace::to_json(*plan));
  require(again.ok() && *again == *plan);
  terrace::testing::HandMade it;
  it.machine.further_engines = {{{"beside", 1, 1e9, {}}, {{0}, {1}}}};
  for (const auto& violation : terrace::violations(it.graph, it.machine, *plan)) {
    require(!to_text(violation, it.graph, it.machine, *plan).empty());
  }
  return 0;
}
