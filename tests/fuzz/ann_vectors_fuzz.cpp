// SPDX-License-Identifier: Apache-2.0
// Whatever bytes are given as a file of vectors, they are refused with a sentence or are whole rows of one
// dimension. The first byte chooses the format.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ann/vector_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace terrace::ann;
  if (size == 0) return 0;
  const auto format = static_cast<VectorFormat>(data[0] % 5);
  const auto vectors = parse_vectors(format, std::as_bytes(std::span(data + 1, size - 1)), "fuzz");
  if (!vectors) {
    if (vectors.error().message.empty()) std::abort();
    return 0;
  }
  if (vectors->dimension == 0 || vectors->values.size() % vectors->dimension != 0) std::abort();
  return 0;
}
