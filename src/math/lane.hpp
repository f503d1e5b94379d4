// SPDX-License-Identifier: Apache-2.0
// Elementary functions as plain code without branches or tables, for use inside vectorised loops.
//
// Each is written for one lane; the loop around it makes it a vector. Errors are a few units in the last
// place. Infinities and NaN pass through exp as they should.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <numbers>

namespace terrace::math::lane {

// ln 2 in two parts; products of the first with small whole numbers are exact.
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = static_cast<float>(std::numbers::ln2 - 0.693359375);

/// c[0] + c[1] x + c[2] x^2 + ...
template <std::size_t N>
[[gnu::always_inline]] inline float polynomial(float x, const std::array<float, N>& c) {
  float sum = c[N - 1];
#pragma GCC unroll 16
  for (std::size_t i = N - 1; i > 0; --i) sum = sum * x + c[i - 1];
  return sum;
}

/// 2^k. pre: -127 < k < 128
[[gnu::always_inline]] inline float power_of_two(std::int32_t k) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(k + 127) << 23);
}

namespace detail {

/// sign^k / (first + k step)! for k = 0, 1, ...: the coefficients of exp, sin and cos.
template <std::size_t N>
constexpr std::array<float, N> inverse_factorials(int first, int step, double sign) {
  std::array<float, N> c{};
  double factorial = 1, power = 1;
  for (int i = 2; i <= first; ++i) factorial *= i;
  for (std::size_t k = 0; k < N; ++k, first += step, power *= sign) {
    c[k] = static_cast<float>(power / factorial);
    for (int i = first + 1; i <= first + step; ++i) factorial *= i;
  }
  return c;
}

/// 2/(2k + first) for k = 0, 1, ...: the coefficients of 2 atanh.
template <std::size_t N>
constexpr std::array<float, N> inverse_odds(int first) {
  std::array<float, N> c{};
  for (std::size_t k = 0; k < N; ++k) c[k] = static_cast<float>(2.0 / (2 * static_cast<int>(k) + first));
  return c;
}

inline constexpr auto kExp = inverse_factorials<6>(2, 1, 1);
inline constexpr auto kSin = inverse_factorials<4>(3, 2, -1);
inline constexpr auto kCos = inverse_factorials<5>(2, 2, -1);
inline constexpr auto kLog = inverse_odds<4>(3);
inline constexpr auto kLog1p = inverse_odds<8>(1);
/// exp(z^2) erfc(z) / t as a polynomial in t = 1 / (1 + 0.4 z), a Chebyshev fit over 0 <= z <= 10.
inline constexpr std::array<float, 9> kErfc = {0.22562170694f,  0.22667326519f,  0.20012525497f,
                                               0.2007425484f,   0.061465686867f, 0.11585861343f,
                                               0.058450887986f, -0.12744643488f, 0.038508509001f};
inline constexpr float kErfcStretch = 0.4f;

}  // namespace detail

struct Whole {
  float value;
  std::int32_t number;  ///< the same
};

/// pre: |x| < 2^22, or NaN, which gives NaN and any number
[[gnu::always_inline]] inline Whole nearest_whole(float x) {
  constexpr float kShift = 0x1.8p23f;  // leaves the low bits of the sum to the whole number
  const float shifted = x + kShift;
  return {shifted - kShift, std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kShift)};
}

/// e^x, subnormal results included.
[[gnu::always_inline]] inline float exp(float x) {
  constexpr float kLeast = -104, kMost = 89;  // beyond these the result is zero or infinite
  x = x < kLeast ? kLeast : x;
  x = x > kMost ? kMost : x;
  const auto [whole, exponent] = nearest_whole(x * std::numbers::log2e_v<float>);
  const float r = (x - whole * kLn2High) - whole * kLn2Low;
  const float value = r * r * polynomial(r, detail::kExp) + r + 1;
  // In two steps, for the exponents of subnormal and infinite results fit into no single factor.
  const std::int32_t half = exponent >> 1;
  return value * power_of_two(half) * power_of_two(exponent - half);
}

/// The natural logarithm. pre: x is positive, normal and finite
[[gnu::always_inline]] inline float log(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  // The fraction lies between sqrt(1/2) and sqrt(2).
  constexpr std::uint32_t kRootHalf = std::bit_cast<std::uint32_t>(std::numbers::sqrt2_v<float> / 2);
  const std::int32_t exponent = static_cast<std::int32_t>(bits - kRootHalf) >> 23;
  const float f = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23)) - 1;
  const float s = f / (2 + f), z = s * s;
  // log(1 + f) = 2 atanh(s), and 2s = f - s f.
  const float tail = s * (f - z * polynomial(z, detail::kLog));
  const auto scale = static_cast<float>(exponent);
  return scale * kLn2High + (f - (tail - scale * kLn2Low));
}

/// log(1 + x). pre: 0 <= x <= 1
[[gnu::always_inline]] inline float log1p(float x) {
  const float s = x / (2 + x);
  return s * polynomial(s * s, detail::kLog1p);
}

[[gnu::always_inline]] inline float sigmoid(float x) { return 1 / (1 + exp(-x)); }

struct SinCos {
  float sin, cos;
};

/// Returns sine and cosine of 2 pi times `turns`. pre: 0 <= turns <= 1
[[gnu::always_inline]] inline SinCos sin_cos(float turns) {
  const auto [value, quarter] = nearest_whole(4 * turns);
  const float x = (turns - value * 0.25f) * (2 * std::numbers::pi_v<float>);
  const float z = x * x;
  const float s = x - x * z * polynomial(z, detail::kSin);
  const float c = 1 - z * polynomial(z, detail::kCos);
  const float sine = (quarter & 1) != 0 ? c : s;
  const float cosine = (quarter & 1) != 0 ? s : c;
  return {(quarter & 2) != 0 ? -sine : sine, ((quarter + 1) & 2) != 0 ? -cosine : cosine};
}

/// What the normal distribution says about x.
struct Normal {
  float below;    ///< the share of the distribution below x
  float density;  ///< at x
};

[[gnu::always_inline]] inline Normal normal(float x) {
  const float z = (x < 0 ? -x : x) * (std::numbers::sqrt2_v<float> / 2);
  const float bell = exp(-0.5f * x * x);
  const float t = 1 / (1 + detail::kErfcStretch * z);
  const float tail = 0.5f * bell * t * polynomial(t, detail::kErfc);
  constexpr float kInverseRootTwoPi = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
  return {x < 0 ? tail : 1 - tail, bell * kInverseRootTwoPi};
}

}  // namespace terrace::math::lane
