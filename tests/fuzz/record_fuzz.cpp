// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a record is refused with a sentence, or is a record whose own text means the same
// and on whose plan the verifier passes judgement.
#include <cstdint>
#include <cstdlib>

#include "terrace/record.hpp"
#include "terrace/verify.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto record = terrace::record_from_json({reinterpret_cast<const char*>(data), size});
  if (!record) {
    require(!record.error().message.empty());
    return 0;
  }
  const auto again = terrace::record_from_json(terrace::to_json(*record));
  require(again.ok() && *again == *record);
  if (!record->plan) return 0;
  for (const auto& violation : terrace::violations(record->graph, record->machine, *record->plan)) {
    require(!to_text(violation, record->graph, record->machine, *record->plan).empty());
  }
  return 0;
}
