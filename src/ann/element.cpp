// SPDX-License-Identifier: Apache-2.0
#include "ann/element.hpp"

#include <algorithm>
#include <cstring>

namespace terrace::ann {

ElementType smallest_type(std::span<const float> values) {
  const bool bytes = std::all_of(values.begin(), values.end(), [](float value) {
    return value >= 0 && value <= 255 && static_cast<float>(static_cast<std::uint8_t>(value)) == value;
  });
  return bytes ? ElementType::u8 : ElementType::f32;
}

void write_elements(ElementType type, std::span<const float> values, std::byte* out) {
  if (type == ElementType::f32) {
    std::memcpy(out, values.data(), values.size_bytes());
    return;
  }
  std::transform(values.begin(), values.end(), out,
                 [](float value) { return static_cast<std::byte>(static_cast<std::uint8_t>(value)); });
}

void read_elements(ElementType type, const std::byte* from, std::span<float> values) {
  if (type == ElementType::f32) {
    std::memcpy(values.data(), from, values.size_bytes());
    return;
  }
  std::transform(from, from + values.size(), values.begin(),
                 [](std::byte one) { return static_cast<float>(std::to_integer<unsigned>(one)); });
}

}  // namespace terrace::ann
