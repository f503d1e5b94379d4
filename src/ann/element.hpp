// SPDX-License-Identifier: Apache-2.0
// The elements of vectors as files hold them, and the slow part on a disk: floats, or bytes where every value
// is a whole number from 0 to 255, as in descriptors of pictures. Searches compute with floats. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::ann {

enum class ElementType : std::uint8_t { f32, u8 };
constexpr std::size_t size_of(ElementType type) { return type == ElementType::f32 ? 4 : 1; }

/// Bytes where they lose nothing.
ElementType smallest_type(std::span<const float> values);

/// pre: for bytes, smallest_type() of the values is that
void write_elements(ElementType type, std::span<const float> values, std::byte* out);
void read_elements(ElementType type, const std::byte* from, std::span<float> values);

}  // namespace terrace::ann
