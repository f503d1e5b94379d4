// SPDX-License-Identifier: Apache-2.0
#include "migration/synchronous.hpp"

#include <set>

namespace terrace::migration {

void wait_at_once(Plan& plan) {
  std::set<std::uint32_t> copies;
  for (const Instruction& instruction : plan.instructions)
    if (const auto* copy = std::get_if<Copy>(&instruction)) copies.insert(copy->ticket);
  std::vector<Instruction> instructions;
  instructions.reserve(plan.instructions.size());
  for (Instruction& instruction : plan.instructions) {
    const auto* wait = std::get_if<Wait>(&instruction);
    if (wait != nullptr && copies.count(wait->ticket) > 0) continue;
    instructions.push_back(std::move(instruction));
    if (const auto* copy = std::get_if<Copy>(&instructions.back())) {
      const Wait at_once{copy->ticket};
      instructions.emplace_back(at_once);
    }
  }
  plan.instructions = std::move(instructions);
}

}  // namespace terrace::migration
