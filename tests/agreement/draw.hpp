// SPDX-License-Identifier: Apache-2.0
// Random sizes for nets, and the surroundings an operation is tried in: layouts depend on the neighbours.
#pragma once

#include <initializer_list>

#include "base/random.hpp"
#include "support/stress_factor.hpp"
#include "terrace/net.hpp"

namespace terrace::agreement {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::int64_t of(std::initializer_list<std::int64_t> choices) {
    return choices.begin()[random_.below(choices.size())];
  }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool coin() { return random_.below(2) == 0; }

  /// Odd ones, and ones around the blocks of vector registers.
  std::int64_t channels() { return of({1, 3, 8, 16, 17, 30, 32}); }
  std::int64_t extent() { return of({1, 5, 7, 13}); }
  Shape image() { return {between(1, 3), channels(), extent(), extent()}; }

 private:
  SplitMix random_;
};

/// Something to differentiate by.
inline Value given(Net& net, const Shape& shape, const std::string& name = "x") {
  return net.parameter(name, shape, {Initial::Kind::normal, 0, 1});
}

/// Whether convolutions, which choose layouts of their own, stand before and behind an operation on images.
struct Surroundings {
  bool before = false, behind = false;
};

inline constexpr Surroundings kSurroundings[] = {{false, false}, {true, false}, {false, true}, {true, true}};

/// An image as an operation might find it.
inline Value arriving(Net& net, const Shape& shape, Surroundings around, const std::string& name = "x") {
  if (!around.before) return given(net, shape, name);
  const Value source = given(net, {shape[0], 5, shape[2], shape[3]}, name);
  return net.conv2d("before " + name, source, shape[1], {.bias = false, .initial = {}});
}

/// What a net makes of the image an operation leaves.
inline Value leaving(Net& net, Value y, Surroundings around) {
  if (!around.behind) return y;
  return net.conv2d("behind", y, 6, {.bias = false, .initial = {}});
}

}  // namespace terrace::agreement
