// SPDX-License-Identifier: Apache-2.0
#include "exec/queue_script.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/check.hpp"

namespace terrace {
namespace {

using Clock = std::vector<std::uint32_t>;  // by lane: how many of its actions are complete

void keep_latest(Clock& clock, const Clock& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

std::uint32_t at(const Clock& clock, std::size_t lane) { return lane < clock.size() ? clock[lane] : 0; }

class QueueResolver {
 public:
  QueueResolver(const Graph& graph, const Machine& machine, const Plan& plan, const OpenTiers& tiers)
      : machine_(machine), plan_(plan), tiers_(tiers), steps_(resolve(graph, machine, plan, tiers)) {}

  QueueScript run() && {
    for (const Action& action : steps_.actions) {
      instruction_ = action.instruction;
      std::visit([this](const auto& one) { add(one); }, action.what);
    }
    script_.moved = std::move(steps_.moved);
    script_.peak = std::move(steps_.peak);
    return std::move(script_);
  }

 private:
  template <class What>
  const What& here() const {
    return std::get<What>(plan_.instructions[instruction_]);
  }

  void add(const RunAction& run) {
    const Run& plan = here<Run>();
    const std::uint32_t engine = plan.engine.index;
    const std::uint32_t lane = lane_of({true, engine, 0}, computes_on_device(plan.engine));
    if (script_.lanes[lane].on_device) {
      QueueLaunch launch{engine, run.kernel, run.variant, {}};
      for (const auto& place : run.places) launch.operands.push_back(address_of(place));
      put(lane, plan.after, std::move(launch));
    } else {
      put(lane, plan.after, QueueHostRun{engine, run.kernel, run.variant, run.operands});
    }
    const auto number = static_cast<std::uint32_t>(script_.actions.size() - 1);
    if (plan.ticket) {
      tickets_[*plan.ticket] = number;
    } else {
      keep_latest(known_, clocks_[number]);
    }
  }

  void add(const CopyAction& copy) {
    const Copy& plan = here<Copy>();
    const bool device = by_device(plan.from, plan.to);
    const std::uint32_t lane = lane_of({false, plan.from.index, plan.to.index}, device);
    if (device) {
      put_copies(lane, plan.after, copies_of(plan, copy.moves));
    } else {
      put(lane, plan.after, QueueMoves{copy.moves});
    }
    tickets_[plan.ticket] = last_on_[lane];
  }

  void add(const WaitAction&) { keep_latest(known_, clocks_[tickets_.at(here<Wait>().ticket)]); }

  // An engine that reaches memory of the device is the device's.
  bool computes_on_device(EngineId engine) const {
    for (std::uint32_t tier = 0; tier < machine_.tiers.size(); ++tier) {
      if (machine_.reaches(engine, {tier}) && tiers_.is_open({tier}) && tiers_[{tier}].device() != nullptr)
        return true;
    }
    return false;
  }

  bool by_device(TierId from, TierId to) const {
    const bool one_is_there = tiers_[from].device() != nullptr || tiers_[to].device() != nullptr;
    return one_is_there && tiers_.is_on_device(from) && tiers_.is_on_device(to);
  }

  DeviceAddress address_of(const std::optional<TierAddress>& place) const {
    return place ? tiers_.device_address(*place) : DeviceAddress{};
  }

  QueueCopies copies_of(const Copy& plan, const std::vector<Move>& moves) const {
    QueueCopies copies{direction_between(tiers_[plan.from], tiers_[plan.to]), {}};
    for (const Move& move : moves) {
      append(copies.copies, {tiers_.device_address({plan.from, move.from.offset}).value,
                             tiers_.device_address({plan.to, move.to.offset}).value, move.from.bytes.count});
    }
    return copies;
  }

  static void append(std::vector<DeviceCopy>& copies, const DeviceCopy& next) {
    if (next.bytes == 0) return;
    if (!copies.empty() && copies.back().from + copies.back().bytes == next.from &&
        copies.back().to + copies.back().bytes == next.to) {
      copies.back().bytes += next.bytes;
    } else {
      copies.push_back(next);
    }
  }

  struct LaneKey {
    bool engine;
    std::uint32_t from, to;
    auto operator<=>(const LaneKey&) const = default;
  };
  std::uint32_t lane_of(LaneKey key, bool on_device) {
    const auto [found, is_new] = lanes_.emplace(key, static_cast<std::uint32_t>(script_.lanes.size()));
    if (is_new) {
      script_.lanes.push_back({on_device, 0});
      behind_.emplace_back();
      last_on_.emplace_back();
    }
    return found->second;
  }

  /// What the next action of the lane has to wait for beyond what those before it have.
  Clock wanted(std::uint32_t lane, const std::vector<std::uint32_t>& after) const {
    Clock wanted = known_;
    for (const std::uint32_t ticket : after) keep_latest(wanted, clocks_[tickets_.at(ticket)]);
    if (lane < wanted.size()) wanted[lane] = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] <= at(behind_[lane], i)) wanted[i] = 0;
    }
    return wanted;
  }

  /// The actions that imply all of it.
  std::vector<std::uint32_t> least_waits(const Clock& wanted) const {
    std::vector<std::uint32_t> waits;
    for (std::uint32_t lane = 0; lane < wanted.size(); ++lane) {
      if (wanted[lane] == 0) continue;
      const bool implied = [&] {
        for (std::uint32_t other = 0; other < wanted.size(); ++other) {
          if (other != lane && wanted[other] > 0 &&
              at(clocks_[number_of(other, wanted[other])], lane) >= wanted[lane])
            return true;
        }
        return false;
      }();
      if (!implied) waits.push_back(number_of(lane, wanted[lane]));
    }
    return waits;
  }

  std::uint32_t number_of(std::uint32_t lane, std::uint32_t position) const {
    return numbers_.at({lane, position});
  }

  template <class What>
  void put(std::uint32_t lane, const std::vector<std::uint32_t>& after, What what) {
    const auto number = static_cast<std::uint32_t>(script_.actions.size());
    const Clock needed = wanted(lane, after);
    QueueAction action{instruction_,        lane,  ++script_.lanes[lane].actions,
                       least_waits(needed), false, std::move(what)};
    for (const std::uint32_t wait : action.waits) {
      script_.actions[wait].is_waited_for = true;
      keep_latest(behind_[lane], clocks_[wait]);
    }
    behind_[lane].resize(std::max<std::size_t>(behind_[lane].size(), lane + 1));
    behind_[lane][lane] = action.position;
    clocks_.push_back(behind_[lane]);
    numbers_[{lane, action.position}] = number;
    last_on_[lane] = number;
    script_.actions.push_back(std::move(action));
  }

  // A transfer that has nothing more to wait for than the one before it on its lane joins that one, if that
  // makes them fewer copies.
  void put_copies(std::uint32_t lane, const std::vector<std::uint32_t>& after, QueueCopies copies) {
    const Clock needed = wanted(lane, after);
    const bool waits = std::any_of(needed.begin(), needed.end(), [](std::uint32_t one) { return one > 0; });
    if (!waits && script_.lanes[lane].actions > 0 && !copies.copies.empty()) {
      auto& before = std::get<QueueCopies>(script_.actions[last_on_[lane]].what);
      const DeviceCopy& next = copies.copies.front();
      if (!before.copies.empty() && before.copies.back().from + before.copies.back().bytes == next.from &&
          before.copies.back().to + before.copies.back().bytes == next.to) {
        for (const DeviceCopy& copy : copies.copies) append(before.copies, copy);
        return;
      }
    }
    put(lane, after, std::move(copies));
  }

  const Machine& machine_;
  const Plan& plan_;
  const OpenTiers& tiers_;
  Script steps_;
  std::uint32_t instruction_ = 0;
  std::map<LaneKey, std::uint32_t> lanes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;  // of actions by lane, position
  std::unordered_map<std::uint32_t, std::uint32_t> tickets_;                  // to actions
  std::vector<Clock> clocks_;           // by action: what is complete when it is
  std::vector<Clock> behind_;           // by lane: the same of its last action
  std::vector<std::uint32_t> last_on_;  // by lane
  Clock known_;                         // what the plan says is complete here
  QueueScript script_;
};

}  // namespace

QueueScript resolve_for_queues(const Graph& graph, const Machine& machine, const Plan& plan,
                               const OpenTiers& tiers) {
  return QueueResolver(graph, machine, plan, tiers).run();
}

}  // namespace terrace
