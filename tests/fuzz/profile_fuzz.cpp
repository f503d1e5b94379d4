// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a profile is refused with a sentence, or is a profile whose own text means the
// same and of which can be said whether it fits a graph.
#include <cstdint>
#include <cstdlib>

#include "terrace/profile_json.hpp"
#include "verify/hand_made.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto profile = terrace::profile_from_json({reinterpret_cast<const char*>(data), size});
  if (!profile) {
    require(!profile.error().message.empty());
    return 0;
  }
  const auto again = terrace::profile_from_json(terrace::to_json(*profile));
  require(again.ok() && *again == *profile);
  require(terrace::fingerprint(*again) == terrace::fingerprint(*profile));
  const terrace::testing::HandMade it;
  const auto fits = validate(*profile, it.graph, it.machine);
  require(fits.ok() || !fits.error().message.empty());
  return 0;
}
