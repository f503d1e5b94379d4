// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a machine is refused with a sentence, or is a valid machine whose own text means
// the same and whose links take some time for every size.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "terrace/machine.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto machine = terrace::machine_from_json({reinterpret_cast<const char*>(data), size});
  if (!machine) {
    require(!machine.error().message.empty());
    return 0;
  }
  require(terrace::validate(*machine).ok());
  const auto again = terrace::machine_from_json(terrace::to_json(*machine));
  require(again.ok() && *again == *machine);
  require(terrace::fingerprint(*again) == terrace::fingerprint(*machine));
  for (const terrace::Link& link : machine->links) {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 20})
      require(link.time({bytes}).count() >= 0);
  }
  return 0;
}
