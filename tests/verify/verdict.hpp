// SPDX-License-Identifier: Apache-2.0
// What the verifier says of the hand-made plan after a change, in words.
#pragma once

#include <functional>
#include <string>

#include "terrace/verify.hpp"
#include "verify/hand_made.hpp"

namespace terrace::testing {

inline constexpr TierId fast{HandMade::fast}, slow{HandMade::slow}, disk{HandMade::disk};
inline constexpr TensorId x{HandMade::x}, w{HandMade::w}, y{HandMade::y}, s{HandMade::s}, z{HandMade::z};

/// What is wrong with the hand-made plan after a change, one line for each violation.
inline std::string verdict(const std::function<void(HandMade&)>& change) {
  HandMade it;
  change(it);
  std::string lines;
  for (const Violation& violation : violations(it.graph, it.machine, it.plan)) {
    lines += (lines.empty() ? "" : "\n") + to_text(violation, it.graph, it.machine, it.plan);
  }
  return lines;
}

/// The same after one instruction is another.
inline std::string with(std::size_t place, const Instruction& instruction) {
  return verdict([&](HandMade& it) { it.plan.instructions[place] = instruction; });
}

/// The same after one more instruction stands before the one at `place`.
inline std::string before(std::size_t place, const Instruction& instruction) {
  return verdict([&](HandMade& it) {
    it.plan.instructions.insert(it.plan.instructions.begin() + static_cast<std::ptrdiff_t>(place),
                                instruction);
  });
}

inline std::string without(std::size_t place) {
  return verdict([&](HandMade& it) {
    it.plan.instructions.erase(it.plan.instructions.begin() + static_cast<std::ptrdiff_t>(place));
  });
}

/// Of several violations.
inline std::string first(const std::string& lines) { return lines.substr(0, lines.find('\n')); }

inline Instruction run(std::uint32_t kernel, std::vector<TierId> tiers, std::uint32_t variant = 0) {
  return Run{{kernel}, variant, std::move(tiers)};
}

}  // namespace terrace::testing
