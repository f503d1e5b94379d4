// Recognisable contents for objects: a seed determines every word, so that a test knows what an object must
// hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "terrace/manager.hpp"

namespace terrace {

inline std::uint64_t word_at(std::uint64_t seed, std::size_t index) {
  return (seed + 1) * 0x9e3779b97f4a7c15ULL + index * 0xbf58476d1ce4e5b9ULL;
}

inline void fill(const Pin& pin, std::uint64_t seed) {
  for (std::size_t at = 0; at < pin.size().count; at += 8) {
    const std::uint64_t word = word_at(seed, at);
    std::memcpy(pin.data() + at, &word, std::min<std::size_t>(8, pin.size().count - at));
  }
}

/// Returns the offset of the first word that differs from what `seed` determines, or the size if none does.
inline std::size_t first_difference(const Pin& pin, std::uint64_t seed) {
  for (std::size_t at = 0; at < pin.size().count; at += 8) {
    const std::uint64_t word = word_at(seed, at);
    if (std::memcmp(pin.data() + at, &word, std::min<std::size_t>(8, pin.size().count - at)) != 0) return at;
  }
  return pin.size().count;
}

inline void write(Manager& manager, ObjectId object, std::uint64_t seed) {
  fill(manager.pin(object, Access::write).value(), seed);
}

inline bool holds(Manager& manager, ObjectId object, std::uint64_t seed) {
  const Pin pin = manager.pin(object, Access::read).value();
  return first_difference(pin, seed) == pin.size().count;
}

}  // namespace terrace
