// This header has the quantities that cross the library's boundaries: amounts of memory, bandwidths and
// times.
//
// `Bytes` is a strong type so that a size is never mistaken for an offset count or an index. Sizes are
// written `4_GiB` in code and `4GiB` in text; KB, MB, GB, TB are powers of ten, KiB, MiB, GiB, TiB powers of
// two. All of them are plain values that are copied freely.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "terrace/result.hpp"

namespace terrace {

struct Bytes {
  std::uint64_t count = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) { return count += other.count, *this; }
  constexpr Bytes& operator-=(Bytes other) { return count -= other.count, *this; }
};

constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
constexpr Bytes operator*(Bytes a, std::uint64_t n) { return {a.count * n}; }
constexpr Bytes operator*(std::uint64_t n, Bytes a) { return a * n; }
constexpr Bytes operator/(Bytes a, std::uint64_t n) { return {a.count / n}; }
constexpr std::uint64_t operator/(Bytes a, Bytes b) { return a.count / b.count; }
constexpr Bytes operator%(Bytes a, Bytes b) { return {a.count % b.count}; }

/// Returns the least multiple of `unit` that is not below `size`. pre: unit > 0
constexpr Bytes round_up(Bytes size, Bytes unit) { return (size + unit - Bytes{1}) / unit * unit; }
/// Returns the greatest multiple of `unit` that is not above `size`. pre: unit > 0
constexpr Bytes round_down(Bytes size, Bytes unit) { return size - size % unit; }

using Seconds = std::chrono::duration<double>;

/// A bandwidth. Zero means that none was declared.
struct BytesPerSecond {
  double value = 0;
  constexpr auto operator<=>(const BytesPerSecond&) const = default;
};

constexpr Seconds operator/(Bytes amount, BytesPerSecond rate) {
  return Seconds{static_cast<double>(amount.count) / rate.value};
}
constexpr BytesPerSecond operator/(Bytes amount, Seconds time) {
  return {static_cast<double>(amount.count) / time.count()};
}

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {n << 30}; }
constexpr Bytes operator""_TiB(unsigned long long n) { return {n << 40}; }
constexpr Bytes operator""_KB(unsigned long long n) { return {n * 1000}; }
constexpr Bytes operator""_MB(unsigned long long n) { return {n * 1000'000}; }
constexpr Bytes operator""_GB(unsigned long long n) { return {n * 1000'000'000}; }
}  // namespace literals

/// Prints an amount exactly, in the largest unit that divides it: `8GiB`, `200GB`, `1536MiB`, `77B`.
std::string to_string(Bytes amount);
/// Prints a rate or a time exactly, so that parsing the text gives the same value: `39GB/s`, `304ns`.
std::string to_string(BytesPerSecond rate);
std::string to_string(Seconds time);
/// Prints a rounded amount for people: `1.50 GiB`.
std::string readable(Bytes amount);
std::string readable(BytesPerSecond rate);

/// Reads `8GiB`, `1.5GB`, `4096` (bytes). Anything else, fractions of a byte included, fails with a sentence.
Result<Bytes> parse_bytes(std::string_view text);
/// Reads `39GB/s`.
Result<BytesPerSecond> parse_rate(std::string_view text);
/// Reads `304ns`, `10us`, `2ms`, `1s`.
Result<Seconds> parse_time(std::string_view text);

}  // namespace terrace
