// SPDX-License-Identifier: Apache-2.0
#include "migration/merged_transfers.hpp"

#include <algorithm>
#include <unordered_map>

namespace terrace {
namespace {

class Rewriting {
 public:
  Rewriting(const Plan& plan, const PlanRegions& regions, const std::vector<MergedTransfer>& merged)
      : plan_(plan), is_moved_up_(plan.instructions.size()) {
    for (const MergedTransfer& one : merged) add(one, regions);
  }

  Rewritten run() && {
    for (std::uint32_t i = 0; i < plan_.instructions.size(); ++i) {
      if (is_moved_up_[i] || is_part(i) || is_wait_for_part(i) || is_free_of_part(i)) continue;
      emit(plan_.instructions[i], i);
    }
    return std::move(made_);
  }

 private:
  /// One merged transfer and how far it is.
  struct Whole {
    Copy copy;
    std::uint32_t place = 0;                  ///< the instruction that it takes the place of
    std::vector<std::uint32_t> regions = {};  ///< allocs that come with it
    bool issued = false, waited = false;
    bool wait_at_once = false;              ///< a part was waited for before the whole is issued
    std::vector<std::uint32_t> frees = {};  ///< of its sources, that come after it
  };

  const Copy& copy_at(std::uint32_t instruction) const {
    return std::get<Copy>(plan_.instructions[instruction]);
  }

  void add(const MergedTransfer& merged, const PlanRegions& regions) {
    const std::size_t number = wholes_.size();
    std::uint32_t first = ~std::uint32_t{0}, last = 0;
    Whole whole{copy_at(regions.copies[merged.copies.front()].instruction)};
    whole.copy.tensors.clear();
    for (const std::uint32_t copy : merged.copies) {
      const std::uint32_t instruction = regions.copies[copy].instruction;
      const Copy& part = copy_at(instruction);
      whole.copy.tensors.insert(whole.copy.tensors.end(), part.tensors.begin(), part.tensors.end());
      first = std::min(first, instruction);
      last = std::max(last, instruction);
      by_instruction_[instruction] = number;
      by_ticket_[part.ticket] = number;
    }
    whole.place = merged.direction == Direction::store ? first : last;
    for (const std::uint32_t copy : merged.copies) {
      for (const std::uint32_t region : regions.copies[copy].to) {
        const std::uint32_t made = regions.all[region].made;
        if (made == PlanRegion::kStart || made < whole.place) continue;
        is_moved_up_[made] = true;
        whole.regions.push_back(made);
      }
    }
    wholes_.push_back(std::move(whole));
  }

  void emit(const Instruction& instruction, std::uint32_t was) {
    made_.instructions.push_back(instruction);
    made_.was.push_back(was);
  }

  bool is_part(std::uint32_t i) {
    const auto found = by_instruction_.find(i);
    if (found == by_instruction_.end()) return false;
    Whole& whole = wholes_[found->second];
    if (i != whole.place) return true;
    for (const std::uint32_t region : whole.regions) emit(plan_.instructions[region], region);
    emit(whole.copy, i);
    whole.issued = true;
    if (!whole.wait_at_once) return true;
    emit(Wait{whole.copy.ticket}, Rewritten::kAdded);
    whole.waited = true;
    for (const std::uint32_t free : whole.frees) emit(plan_.instructions[free], free);
    std::erase(held_, found->second);
    return true;
  }

  bool is_wait_for_part(std::uint32_t i) {
    const auto* wait = std::get_if<Wait>(&plan_.instructions[i]);
    const auto found = wait == nullptr ? by_ticket_.end() : by_ticket_.find(wait->ticket);
    if (found == by_ticket_.end()) return false;
    Whole& whole = wholes_[found->second];
    if (!whole.issued) {
      if (!whole.wait_at_once) held_.push_back(found->second);
      whole.wait_at_once = true;
    } else if (!whole.waited) {
      emit(Wait{whole.copy.ticket}, i);
      whole.waited = true;
    }
    return true;
  }

  /// A source is freed once it was waited for: after the whole.
  bool is_free_of_part(std::uint32_t i) {
    const auto* free = std::get_if<Free>(&plan_.instructions[i]);
    if (free == nullptr) return false;
    for (const std::size_t number : held_) {
      Whole& whole = wholes_[number];
      const auto& tensors = whole.copy.tensors;
      if (whole.copy.from != free->tier ||
          std::find(tensors.begin(), tensors.end(), free->tensor) == tensors.end())
        continue;
      whole.frees.push_back(i);
      return true;
    }
    return false;
  }

  const Plan& plan_;
  std::vector<bool> is_moved_up_;  ///< by instruction
  std::vector<Whole> wholes_;
  std::unordered_map<std::uint32_t, std::size_t> by_instruction_, by_ticket_;
  std::vector<std::size_t> held_;  ///< wholes that were waited for and are not issued yet
  Rewritten made_;
};

}  // namespace

Rewritten with_merged(const Plan& plan, const PlanRegions& regions,
                      const std::vector<MergedTransfer>& merged) {
  return Rewriting(plan, regions, merged).run();
}

}  // namespace terrace
