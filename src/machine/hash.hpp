// A short name for a text: FNV-1a over its bytes, the same on every computer. Not for secrets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace terrace {

/// Sixteen hexadecimal digits.
inline std::string hash_text(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  std::string digits(16, '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, hash >>= 4)
    *digit = "0123456789abcdef"[hash & 0xF];
  return digits;
}

}  // namespace terrace
