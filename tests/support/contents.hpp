// Recognisable contents: a seed decides every byte, so that a test knows what an object must hold.
#pragma once

#include <cstddef>
#include <cstdint>

#include "terrace/manager.hpp"

namespace terrace {

inline std::byte byte_at(std::uint64_t seed, std::size_t index) {
  const std::uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15ULL + (index / 8) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<std::byte>(word >> (index % 8 * 8));
}

inline void fill(const Pin& pin, std::uint64_t seed) {
  for (std::size_t i = 0; i < pin.size().count; ++i) pin.data()[i] = byte_at(seed, i);
}

/// The first index that differs from what `seed` demands, or the size if all is well.
inline std::size_t first_difference(const Pin& pin, std::uint64_t seed) {
  std::size_t i = 0;
  while (i < pin.size().count && pin.data()[i] == byte_at(seed, i)) ++i;
  return i;
}

inline void write(Manager& manager, ObjectId object, std::uint64_t seed) {
  fill(manager.pin(object, Access::write).value(), seed);
}

inline bool holds(Manager& manager, ObjectId object, std::uint64_t seed) {
  const Pin pin = manager.pin(object, Access::read).value();
  return first_difference(pin, seed) == pin.size().count;
}

}  // namespace terrace
