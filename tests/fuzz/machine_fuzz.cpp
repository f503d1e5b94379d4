// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a machine is refused with a sentence, or is a valid machine whose own text means
// the same and whose links take some time for every size.
#include <cmath>
#include <cstdint>

#include "fuzz/round_trip.hpp"
#include "terrace/machine.hpp"

using terrace::testing::require, terrace::testing::round_trip;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto machine = round_trip(data, size, terrace::machine_from_json,
                                  [](const auto& made) { return terrace::to_json(made); });
  if (!machine) return 0;
  require(terrace::validate(*machine).ok());
  for (const terrace::Link& link : machine->links) {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 20})
      require(link.time({bytes}).count() >= 0);
  }
  return 0;
}
