// SPDX-License-Identifier: Apache-2.0
#include "planners/best/state_snapshots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "plan/region_size.hpp"
#include "plan/step_uses.hpp"

namespace terrace::best {
namespace {

std::uint32_t next_ticket(const Plan& plan) {
  std::uint32_t next = 0;
  for (const Instruction& instruction : plan.instructions) {
    if (const auto* copy = std::get_if<Copy>(&instruction)) next = std::max(next, copy->ticket + 1);
  }
  return next;
}

/// By read: whether the next one of its tensor, if any, has a snapshot of its own. pre: in order
std::vector<bool> find_last(const std::vector<StateRead>& all) {
  std::vector<bool> last(all.size(), true);
  std::map<TensorId, std::size_t> latest;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [found, is_new] = latest.try_emplace(all[i].tensor, i);
    if (!is_new) last[std::exchange(found->second, i)] = !all[i].is_saved;
  }
  return last;
}

}  // namespace

bool StateSnapshots::possible(const Machine& machine) {
  for (std::uint32_t tier = 1; tier < machine.tiers.size(); ++tier) {
    if (machine.is_linked_both_ways({0}, {tier})) return true;
  }
  return false;
}

StateSnapshots::StateSnapshots(std::vector<StateRead> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const StateRead& a, const StateRead& b) { return a.first < b.first; });
  std::map<TensorId, std::uint32_t> place;
  std::vector<std::uint32_t> second;  // by place: one past the latest second run so far
  std::vector<Runs> later;
  const std::vector<bool> last = find_last(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StateRead& one = all[i];
    const auto [found, is_new] = place.emplace(one.tensor, static_cast<std::uint32_t>(tensors_.size()));
    if (is_new) {
      tensors_.push_back(one.tensor);
      second.push_back(0);
    }
    const Runs runs{one.first, one.second, found->second, last[i]};
    const std::uint32_t before = std::exchange(second[runs.place], one.second + 1);
    one.is_saved ? later.push_back(runs) : add(runs, std::max(before, one.written));
  }
  add_returns(std::move(later));
  for (auto* groups : {&groups_, &returns_}) {
    for (Group& group : *groups) std::sort(group.places.begin(), group.places.end());
  }
}

/// All first runs of a group come before all of its second runs, and none of its tensors is changed between
/// `save` and its own first run. `changed`: one past the last kernel before that which changes it. Its
/// transfer begins as early as it can: later it would wait behind others.
void StateSnapshots::add(const Runs& one, std::uint32_t changed) {
  if (groups_.empty() || one.first >= groups_.back().until || changed > groups_.back().save)
    groups_.push_back({changed, one.first, one.first, one.second});
  Group& group = groups_.back();
  group.begin = std::max(group.begin, changed);
  group.restore = one.first;
  group.until = std::min(group.until, one.second);
  group.places.push_back(one.place);
  if (one.last) group.last.push_back(one.place);
}

/// As few returns as possible: each is as late as the first run that needs it allows.
void StateSnapshots::add_returns(std::vector<Runs> later) {
  std::stable_sort(later.begin(), later.end(),
                   [](const Runs& a, const Runs& b) { return a.second < b.second; });
  for (const Runs& one : later) {
    if (returns_.empty() || one.first >= returns_.back().until)
      returns_.push_back({kNever, kNever, one.first, one.second});
    Group& group = returns_.back();
    group.restore = std::max(group.restore, one.first);
    group.places.push_back(one.place);
    if (one.last) group.last.push_back(one.place);
  }
}

/// Puts transfers between the instructions of a plan.
class StateSnapshots::Writing {
 public:
  Writing(const StateSnapshots& values, const PlanRequest& request, Draft& draft)
      : values_(values), request_(request), draft_(draft), ticket_(next_ticket(draft.plan)) {}

  Result<void> run() {
    if (values_.groups_.empty()) return {};
    if (auto found = find_tier(); !found) return found;
    std::vector<Instruction> before = std::exchange(draft_.plan.instructions, {});
    for (Instruction& instruction : before) {
      const auto* run = std::get_if<Run>(&instruction);
      const std::uint32_t kernel = run != nullptr ? run->kernel.index : ~std::uint32_t{0};
      if (run != nullptr) come_before(kernel);
      add(std::move(instruction));
      if (run != nullptr) come_after(kernel);
    }
    return {};
  }

 private:
  void add(Instruction instruction) { draft_.plan.instructions.push_back(std::move(instruction)); }

  /// Finds a slower tier with room for the snapshots beside all else, and takes that room.
  Result<void> find_tier() {
    const Machine& machine = request_.machine;
    for (std::uint32_t i = 1; i < machine.tiers.size(); ++i) {
      if (!machine.is_linked_both_ways({0}, {i})) continue;
      Bytes end = round_up(draft_.needed[i], machine.tiers[i].granularity);
      offsets_.clear();
      for (const TensorId tensor : values_.tensors_) {
        offsets_.push_back(end.count);
        end += region_size(request_.graph[tensor], machine.tiers[i]);
      }
      if (end > request_.budget[i]) continue;
      draft_.needed[i] = end;
      tier_ = {i};
      return {};
    }
    return Error{ErrorCode::too_large,
                 fmt::format("the slower tiers have no room for old values of {} tensors", offsets_.size())};
  }

  void come_before(std::uint32_t kernel) {
    for (const Group& group : values_.groups_) {
      if (group.begin == kernel) {
        for (const std::uint32_t place : group.places) {
          add(Alloc{values_.tensors_[place], tier_, offsets_[place]});
        }
        leaving_[&group] = copy(group, {0}, tier_);
      }
      if (group.save == kernel) wait_for(leaving_[&group]);
    }
    for_each_group([&](const Group& group) {
      if (group.until != kernel) return;
      wait_for(coming_[&group]);
      for (const std::uint32_t place : group.last) add(Free{values_.tensors_[place], tier_});
    });
  }

  void wait_for(std::vector<std::uint32_t>& tickets) {
    for (const std::uint32_t ticket : std::exchange(tickets, {})) add(Wait{ticket});
  }

  void come_after(std::uint32_t kernel) {
    for_each_group([&](const Group& group) {
      if (group.restore == kernel) coming_[&group] = copy(group, tier_, {0});
    });
  }

  template <class Do>
  void for_each_group(const Do& what) const {
    for (const auto* groups : {&values_.groups_, &values_.returns_}) {
      for (const Group& group : *groups) what(group);
    }
  }

  /// Copies what lies side by side in one transfer.
  std::vector<std::uint32_t> copy(const Group& group, TierId from, TierId to) {
    std::vector<std::uint32_t> tickets;
    std::vector<TensorId> together;
    for (std::size_t i = 0; i < group.places.size(); ++i) {
      together.push_back(values_.tensors_[group.places[i]]);
      if (i + 1 < group.places.size() && group.places[i + 1] == group.places[i] + 1) continue;
      add(Copy{std::exchange(together, {}), from, to, ticket_});
      tickets.push_back(ticket_++);
    }
    return tickets;
  }

  const StateSnapshots& values_;
  const PlanRequest& request_;
  Draft& draft_;
  std::uint32_t ticket_;
  TierId tier_{0};
  std::vector<std::uint64_t> offsets_;  ///< by place
  std::map<const Group*, std::vector<std::uint32_t>> leaving_, coming_;
};

Result<void> StateSnapshots::add_to(Draft& draft, const PlanRequest& request) const {
  return Writing(*this, request, draft).run();
}

}  // namespace terrace::best
