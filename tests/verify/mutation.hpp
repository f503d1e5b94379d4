// SPDX-License-Identifier: Apache-2.0
// One random change to a plan: an instruction dropped, doubled, moved or aimed at something else, or a
// changed start or budget.
#pragma once

#include <string>
#include <utility>

#include "base/random.hpp"
#include "terrace/plan.hpp"

namespace terrace::testing {

enum class Change {
  drop,
  swap_neighbours,
  swap_any,
  repeat,
  move,
  late_wait,
  early_copy,
  offset,
  tensor,
  tier,
  ticket,
  kernel,
  pieces,
  start,
  budget
};
inline constexpr unsigned kChanges = static_cast<unsigned>(Change::budget) + 1;

inline const char* to_string(Change change) {
  constexpr const char* kNames[] = {"drop",      "swap neighbours", "swap any", "repeat", "move",
                                    "late wait", "early copy",      "offset",   "tensor", "tier",
                                    "ticket",    "kernel",          "pieces",   "start",  "budget"};
  return kNames[static_cast<unsigned>(change)];
}

class Mutation {
 public:
  Mutation(const Graph& graph, const Machine& machine, std::uint64_t seed)
      : graph_(graph), machine_(machine), random_(seed) {}

  /// The same plan with one change of this kind, or as it was where there is nothing to change.
  Plan run(Plan plan, Change change) {
    auto& list = plan.instructions;
    const std::size_t i = random_.below(list.size()), j = random_.below(list.size());
    const auto at = [&](std::size_t place) { return list.begin() + static_cast<std::ptrdiff_t>(place); };
    switch (change) {
      case Change::drop:
        list.erase(at(i));
        break;
      case Change::swap_neighbours:
        if (i + 1 < list.size()) std::swap(list[i], list[i + 1]);
        break;
      case Change::swap_any:
        std::swap(list[i], list[j]);
        break;
      case Change::repeat: {
        const Instruction copy = list[i];
        list.insert(at(j), copy);
        break;
      }
      case Change::move:
        shift(list, i, j);
        break;
      case Change::late_wait:
        if (const std::size_t k = next<Wait>(list, i); k < list.size())
          shift(list, k, k + random_.below(list.size() - k));
        break;
      case Change::early_copy:
        if (const std::size_t k = next<Copy>(list, i); k < list.size()) shift(list, k, random_.below(k + 1));
        break;
      case Change::start:
        change_start(plan);
        break;
      case Change::budget:
        change_budget(plan);
        break;
      default:
        change_one(list, i, change);
    }
    return plan;
  }

 private:
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(random_.below(bound)); }
  // One more than there are: an id of nothing is a change, too.
  TensorId any_tensor() { return {below(graph_.tensors.size() + 1)}; }
  TierId any_tier() { return {below(machine_.tiers.size() + 1)}; }
  std::uint64_t near(std::uint64_t offset) {
    constexpr std::uint64_t kSteps[] = {1, 32, 64, 128, 4096, 8192, 1ULL << 63U};
    const std::uint64_t step = kSteps[random_.below(std::size(kSteps))];
    return random_.below(2) == 0 ? offset + step : offset - step;
  }

  /// The first of this kind from `i` on, or the end.
  template <class Kind>
  static std::size_t next(const std::vector<Instruction>& list, std::size_t i) {
    while (i < list.size() && !std::holds_alternative<Kind>(list[i])) ++i;
    return i;
  }

  static void shift(std::vector<Instruction>& list, std::size_t from, std::size_t to) {
    const Instruction taken = list[from];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(from));
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(to), taken);
  }

  /// The first instruction from `i` on that has such a part.
  void change_one(std::vector<Instruction>& list, std::size_t i, Change change) {
    for (std::size_t tried = 0; tried < list.size(); ++tried, i = (i + 1) % list.size()) {
      if (std::visit([&](auto& instruction) { return alter(instruction, change); }, list[i])) return;
    }
  }

  bool alter(Alloc& alloc, Change change) {
    if (change == Change::offset) return alloc.offset = near(alloc.offset), true;
    if (change == Change::tensor) return alloc.tensor = any_tensor(), true;
    return change == Change::tier && (alloc.tier = any_tier(), true);
  }
  bool alter(Free& free, Change change) {
    if (change == Change::tensor) return free.tensor = any_tensor(), true;
    return change == Change::tier && (free.tier = any_tier(), true);
  }
  bool alter(Copy& copy, Change change) {
    if (change == Change::tensor) return copy.tensors[below(copy.tensors.size())] = any_tensor(), true;
    if (change == Change::tier) return (random_.below(2) == 0 ? copy.from : copy.to) = any_tier(), true;
    if (change == Change::ticket) return copy.ticket = below(copy.ticket + 2), true;
    if (change != Change::pieces) return false;
    if (random_.below(2) == 0) return copy.tensors.pop_back(), true;
    return copy.tensors.push_back({copy.tensors.back().index + 1}), true;
  }
  bool alter(Wait& wait, Change change) {
    return change == Change::ticket && (wait.ticket = below(wait.ticket + 2), true);
  }
  bool alter(Run& run, Change change) {
    if (change == Change::tier && !run.tiers.empty())
      return run.tiers[below(run.tiers.size())] = any_tier(), true;
    if (change == Change::pieces) return run.variant += 1 + below(2), true;
    return change == Change::kernel && (run.kernel = {below(graph_.kernels.size() + 1)}, true);
  }

  void change_start(Plan& plan) {
    Alloc& region = plan.start[below(plan.start.size())];
    switch (random_.below(5)) {
      case 0:
        region.offset = near(region.offset);
        break;
      case 1:
        region.tier = any_tier();
        break;
      case 2:
        region.tensor = any_tensor();
        break;
      case 3:
        plan.start.push_back({any_tensor(), any_tier(), near(region.offset)});
        break;
      default:
        region = plan.start.back(), plan.start.pop_back();
    }
  }

  void change_budget(Plan& plan) {
    Bytes& budget = plan.budget[below(plan.budget.size())];
    budget = Bytes{random_.below(budget.count + 4096)};
  }

  const Graph& graph_;
  const Machine& machine_;
  SplitMix random_;
};

}  // namespace terrace::testing
