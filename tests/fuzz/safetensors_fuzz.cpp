// SPDX-License-Identifier: Apache-2.0
// Whatever bytes are given as a safetensors file, they are refused with a sentence or their tensors fill it
// exactly, one after the other. Two forms of input: a whole file, and a header to put a right length before.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "data/safetensors.hpp"

namespace {

void put_length(std::vector<std::uint8_t>& file, std::size_t length) {
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<std::uint8_t>(length >> 8 * i));
}

std::vector<std::uint8_t> made(const std::uint8_t* data, std::size_t size) {
  if (data[0] % 2 == 0) return {data + 1, data + size};
  std::vector<std::uint8_t> file;
  put_length(file, size - 1);
  file.insert(file.end(), data + 1, data + size);
  file.resize(file.size() + data[0] / 2);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto file = made(data, size);
  const auto contents = terrace::safetensors::parse(std::as_bytes(std::span(file)), "fuzz");
  if (!contents) {
    if (contents.error().message.empty()) std::abort();
    return 0;
  }
  const std::byte* end = nullptr;
  for (const auto& tensor : contents->tensors) {
    if (end != nullptr && tensor.bytes.data() != end) std::abort();
    end = tensor.bytes.data() + tensor.bytes.size();
    if (contents->find(tensor.name) != &tensor) std::abort();
  }
  if (end != nullptr && end != std::as_bytes(std::span(file)).data() + file.size()) std::abort();
  return 0;
}
