// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a tier's spec is refused with a sentence, or prints to text that means the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "terrace/tier_spec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto spec = terrace::parse_tier_spec({reinterpret_cast<const char*>(data), size});
  if (!spec) {
    if (spec.error().message.empty()) std::abort();
    return 0;
  }
  const auto again = terrace::parse_tier_spec(terrace::to_string(*spec));
  if (!again || *again != *spec) std::abort();
  return 0;
}
