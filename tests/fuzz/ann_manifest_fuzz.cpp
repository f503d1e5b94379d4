// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as the manifest of an index, it is refused with a sentence or printed as it was
// read.
#include <cstdint>
#include <cstdlib>

#include "ann/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace terrace::ann;
  const auto manifest = parse_manifest({reinterpret_cast<const char*>(data), size});
  if (!manifest) {
    if (manifest.error().message.empty()) std::abort();
    return 0;
  }
  if (!(parse_manifest(print_manifest(*manifest)).value() == *manifest)) std::abort();
  return 0;
}
