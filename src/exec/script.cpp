// SPDX-License-Identifier: Apache-2.0
#include "exec/script.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "graph/variant.hpp"

namespace terrace {
namespace {

class Resolver {
 public:
  Resolver(const Graph& graph, const Machine& machine, const Plan& plan, const OpenTiers& tiers)
      : graph_(graph), plan_(plan), tiers_(tiers), residence_(graph, machine, plan) {}

  Script run() && {
    if (!has_one_lane(plan_)) begin_lanes();
    for (; position_ < plan_.instructions.size(); ++position_) {
      const Instruction& instruction = plan_.instructions[position_];
      std::visit([this](const auto& one) { add(one); }, instruction);
      residence_.apply(instruction);
    }
    script_.slots = static_cast<std::uint32_t>(transfers_.size());
    script_.peak = residence_.peak();
    return std::move(script_);
  }

 private:
  void add(const Alloc&) {}
  void add(const Free&) {}

  void add(const Run& run) {
    const Kernel& kernel = graph_[run.kernel];
    RunAction action{run.kernel.index, run.variant, {}, {}, {}, {}};
    auto tier = run.tiers.begin();
    for (const Operand& operand : kernel.inputs) use(action, operand.tensor, *tier++, operand.touched, {});
    for (const Operand& operand : kernel.outputs) use(action, operand.tensor, *tier++, {}, operand.touched);
    if (runs_without_workspace(kernel, run.variant)) {
      action.operands.push_back(nullptr);
      action.places.emplace_back();
      action.regions.push_back({});
    } else if (kernel.workspace) {
      const Bytes bytes = graph_[kernel.workspace].bytes;
      use(action, kernel.workspace, *tier++, bytes, bytes);
    }
    put(std::move(action));
    if (script_.lanes.empty()) return;
    const bool inline_engine = run.engine == EngineId{} && script_.lanes[0].engine.has_value();
    const std::uint32_t lane = inline_engine ? 0 : lane_of(run.engine);
    Action& made = join(lane, run.after, run.ticket);
    // A kernel's own state is not to be used twice at once.
    LaneCount& last = last_runs_[run.kernel.index];
    if (last.number > 0 && last.lane != lane) made.after.push_back(last);
    last = made.place;
  }

  void use(RunAction& action, TensorId tensor, TierId tier, Bytes read, Bytes written) {
    const TierAddress place = residence_.address(tensor, tier);
    action.operands.push_back(tiers_.at(place));
    action.places.emplace_back(place);
    action.regions.push_back(residence_.size(tensor, tier));
    Tier& memory = tiers_[tier];
    if (memory.description().read_rate == BytesPerSecond{}) return;
    auto charge = std::find_if(action.charges.begin(), action.charges.end(),
                               [&](const Charge& known) { return known.tier == &memory; });
    if (charge == action.charges.end()) charge = action.charges.insert(charge, Charge{&memory, {}, {}});
    charge->read += read;
    charge->written += written;
  }

  void add(const Copy& copy) {
    CopyAction action{static_cast<std::uint32_t>(transfers_.size()), {}};
    for (const TensorId tensor : copy.tensors) {
      if (graph_[tensor].bytes > Bytes{}) append(action.moves, move_of(tensor, copy.from, copy.to));
    }
    for (const Move& move : action.moves) count(copy.from, copy.to, move.from.bytes);
    transfers_[copy.ticket] = {action.slot, position_, {copy.from, copy.to}};
    in_flight_[{copy.from, copy.to}].push_back({action.slot, position_});
    put(std::move(action));
    if (script_.lanes.empty()) return;
    const std::uint32_t lane = lane_of(copy.from, copy.to);
    Action& made = join(lane, copy.after, copy.ticket);
    // The mover has several transfers of a link under way: those that fill one region are kept apart.
    for (const TensorId tensor : copy.tensors) {
      LaneCount& last = last_fills_[{tensor, copy.to}];
      if (last.number > 0 && last.lane == lane) made.after.push_back(last);
      last = made.place;
    }
    script_.lanes[lane].holds |= !made.after.empty();
  }

  // ---- Lanes

  void begin_lanes() {
    const bool waits =
        std::none_of(plan_.instructions.begin(), plan_.instructions.end(), [](const Instruction& one) {
          const auto* run = std::get_if<Run>(&one);
          return run != nullptr && run->engine == EngineId{} && run->ticket;
        });
    script_.lanes.emplace_back();
    if (waits) script_.lanes[0].engine = EngineId{};
  }
  std::uint32_t lane_of(EngineId engine) {
    const auto [found, is_new] = engine_lanes_.emplace(engine, script_.lanes.size());
    if (is_new) script_.lanes.push_back({engine});
    return found->second;
  }
  std::uint32_t lane_of(TierId from, TierId to) {
    const auto [found, is_new] = link_lanes_.emplace(LinkEnds{from, to}, script_.lanes.size());
    if (is_new) script_.lanes.push_back({{}, {}, true});
    return found->second;
  }
  /// Puts the last action on a lane.
  Action& join(std::uint32_t lane, const std::vector<std::uint32_t>& after,
               std::optional<std::uint32_t> ticket) {
    Action& action = script_.actions.back();
    action.beside = ticket.has_value();
    for (const std::uint32_t one : after) action.after.push_back(ticket_counts_.at(one));
    if (lane == 0) return action;
    script_.lanes[lane].actions.push_back(static_cast<std::uint32_t>(script_.actions.size() - 1));
    action.place = {lane, static_cast<std::uint32_t>(script_.lanes[lane].actions.size())};
    if (ticket) ticket_counts_[*ticket] = action.place;
    return action;
  }

  /// Copies cover whole regions, so that disks need not read a block to change a part of it.
  Move move_of(TensorId tensor, TierId from, TierId to) const {
    const Bytes room = residence_.size(tensor, to);
    const Bytes bytes = std::min(residence_.size(tensor, from), room);
    return {tiers_.extent(residence_.address(tensor, from), bytes),
            tiers_.extent(residence_.address(tensor, to), room)};
  }

  static void append(std::vector<Move>& moves, const Move& next) {
    if (moves.empty() || moves.back().from.offset + moves.back().from.bytes.count != next.from.offset ||
        moves.back().to.offset + moves.back().from.bytes.count != next.to.offset) {
      moves.push_back(next);
      return;
    }
    moves.back().to.bytes = moves.back().from.bytes + next.to.bytes;
    moves.back().from.bytes += next.from.bytes;
  }

  void count(TierId from, TierId to, Bytes bytes) {
    const auto link = std::find_if(script_.moved.begin(), script_.moved.end(), [&](const Traffic& traffic) {
      return traffic.from == from && traffic.to == to;
    });
    if (link == script_.moved.end()) {
      script_.moved.push_back({from, to, bytes});
    } else {
      link->bytes += bytes;
    }
  }

  void add(const Wait& wait) {
    const auto started = transfers_.find(wait.ticket);
    if (started == transfers_.end()) {
      put(WaitAction{WaitAction::kNothing});
      script_.actions.back().place = ticket_counts_.at(wait.ticket);
      return;
    }
    WaitAction action{started->second.slot, started->second.instruction};
    auto& in_flight = in_flight_[started->second.link];
    const auto it = std::find_if(in_flight.begin(), in_flight.end(),
                                 [&](const WaitAction& one) { return one.slot == action.slot; });
    if (it != in_flight.end()) {  // else the wait for a later one implied it
      action.earlier.assign(in_flight.begin(), it);
      in_flight.erase(in_flight.begin(), it + 1);
    }
    put(std::move(action));
    if (!script_.lanes.empty()) script_.actions.back().place = ticket_counts_.at(wait.ticket);
  }

  template <class A>
  void put(A action) {
    script_.actions.push_back({position_, std::move(action), {}, false, {}});
  }

  using LinkEnds = std::pair<TierId, TierId>;
  struct Started {
    std::uint32_t slot = 0, instruction = 0;
    LinkEnds link = {};
  };

  const Graph& graph_;
  const Plan& plan_;
  const OpenTiers& tiers_;
  Residence residence_;
  std::uint32_t position_ = 0;
  std::unordered_map<std::uint32_t, Started> transfers_;   // by ticket
  std::map<LinkEnds, std::vector<WaitAction>> in_flight_;  // that nothing waited for yet
  std::map<EngineId, std::uint32_t> engine_lanes_;
  std::map<LinkEnds, std::uint32_t> link_lanes_;
  std::unordered_map<std::uint32_t, LaneCount> ticket_counts_;
  std::unordered_map<std::uint32_t, LaneCount> last_runs_;       // by kernel
  std::map<std::pair<TensorId, TierId>, LaneCount> last_fills_;  // by region
  Script script_;
};

}  // namespace

Script resolve(const Graph& graph, const Machine& machine, const Plan& plan, const OpenTiers& tiers) {
  return Resolver(graph, machine, plan, tiers).run();
}

}  // namespace terrace
