// FNV-1a over 64 bits (Fowler, Noll, Vo): the same number from the same bytes on every platform, for
// fingerprints that outlive a process. It tells apart what changed by accident; it is no defence.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace terrace {

class StableHash {
 public:
  /// Length first, so that two texts never run into each other.
  void text(std::string_view value) {
    number(value.size());
    for (const char c : value) byte(static_cast<unsigned char>(c));
  }
  template <class Integer>
  requires std::is_integral_v<Integer>
  void number(Integer value) {
    const auto wide = static_cast<std::uint64_t>(value);
    for (unsigned shift = 0; shift < 64; shift += 8) byte(static_cast<unsigned char>(wide >> shift));
  }
  void number(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  void number(float value) { number(std::bit_cast<std::uint32_t>(value)); }

  std::uint64_t value() const { return state_; }

 private:
  void byte(unsigned char value) { state_ = (state_ ^ value) * 0x100000001B3; }
  std::uint64_t state_ = 0xCBF29CE484222325;
};

}  // namespace terrace
