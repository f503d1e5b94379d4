// A Fingerprint is a short text that changes whenever its input does: 64 bits of FNV-1a (Fowler, Noll, Vo) in
// hexadecimal. It detects accidental differences, not attacks, and is the same on every platform.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "terrace/bytes.hpp"

namespace terrace {

class Fingerprint {
 public:
  Fingerprint& add(std::string_view text) {
    add(text.size());
    for (const char c : text) mix(static_cast<unsigned char>(c));
    return *this;
  }
  template <std::integral Number>
  Fingerprint& add(Number number) {
    const auto bits = static_cast<std::uint64_t>(number);
    for (int shift = 0; shift < 64; shift += 8) mix(static_cast<unsigned char>(bits >> shift));
    return *this;
  }
  Fingerprint& add(float number) { return add(std::bit_cast<std::uint32_t>(number)); }
  Fingerprint& add(double number) { return add(std::bit_cast<std::uint64_t>(number)); }
  Fingerprint& add(Bytes amount) { return add(amount.count); }
  Fingerprint& add(Seconds time) { return add(time.count()); }
  Fingerprint& add(BytesPerSecond rate) { return add(rate.value); }

  /// Returns sixteen hexadecimal digits.
  std::string text() const {
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(state_ >> shift) & 15];
    return digits;
  }

 private:
  void mix(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001B3; }
  std::uint64_t state_ = 0xCBF29CE484222325;
};

}  // namespace terrace
