// SPDX-License-Identifier: Apache-2.0
// The dumb judge of plans for several lanes: it goes through every course that a step can take.
//
// A course is an order in which instructions are issued and things (transfers and runs) start and end, each
// as soon or as late as its lane lets it. Regions hold hashes of what was computed, so that a wrong value
// shows. A step fails where two things overlap of which one writes what the other uses, where something uses
// a region that is gone or reads what plain execution would not, and where it does not end as it should.
// States that were seen before are not looked at again. It knows no clocks, and is for plans of a dozen
// instructions.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/random.hpp"
#include "graph/variant.hpp"
#include "terrace/plan.hpp"

namespace terrace::testing {

class LaneOracle {
 public:
  LaneOracle(const Graph& graph, const Machine& machine, const Plan& plan)
      : graph_(graph), machine_(machine), plan_(plan) {}

  /// How the step can go wrong in some course, in words; empty: in none.
  std::string harm() {
    try {
      run_plainly();
      resolve();
      State first;
      first.started.resize(lanes_.size());
      first.ended.resize(lanes_.size());
      first.contents.resize(instances_.size(), kNothing);
      first.alive.resize(instances_.size());
      for (std::size_t i = 0; i < plan_.start.size(); ++i) {
        first.alive[i] = true;
        first.contents[i] = before_step(plan_.start[i].tensor);
      }
      explore(first);
    } catch (const Harm& found) {
      return found.what;
    }
    return "";
  }
  std::size_t states() const { return seen_.size(); }

 private:
  using Hash = std::uint64_t;
  static constexpr Hash kNothing = 0;
  struct Harm {
    std::string what;
  };
  /// A region from its alloc to its free.
  struct Instance {
    TensorId tensor;
    TierId tier;
    std::uint64_t begin, end;
  };
  struct Thing {
    std::size_t instruction, lane;
    std::vector<std::size_t> reads, writes;  ///< instances
    std::vector<std::size_t> after;          ///< things
  };
  struct State {
    std::size_t issued = 0;                   ///< instructions
    std::vector<std::size_t> started, ended;  ///< by lane
    std::vector<Hash> contents;               ///< by instance
    std::vector<bool> alive;
  };

  static void need(bool holds, const std::string& what) {
    if (!holds) throw Harm{what};
  }
  static Hash mix(Hash a, Hash b) { return SplitMix(a * 31 + b).next() | 1; }
  static Hash before_step(TensorId tensor) { return mix(17, tensor.index); }

  // ---- What plain execution reads and leaves

  void run_plainly() {
    for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) plain_.push_back(before_step({i}));
    for (std::uint32_t k = 0; k < graph_.kernels.size(); ++k) {
      wanted_.emplace_back();
      for (const Operand& input : graph_.kernels[k].inputs)
        wanted_.back().push_back(plain_[input.tensor.index]);
      for (std::size_t o = 0; o < graph_.kernels[k].outputs.size(); ++o)
        plain_[graph_.kernels[k].outputs[o].tensor.index] = made_by(k, o, wanted_.back());
    }
  }
  static Hash made_by(std::uint32_t kernel, std::size_t output, const std::vector<Hash>& inputs) {
    Hash made = mix(kernel + 1, output + 1);
    for (const Hash input : inputs) made = mix(made, input);
    return made;
  }

  // ---- What instructions speak of: regions exist as they are issued, whatever lanes do

  void resolve() {
    for (const Alloc& region : plan_.start) create(region);
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i) {
      thing_of_.push_back(kNone);
      touched_.push_back(kNone);
      position_ = i;
      std::visit([this](const auto& one) { resolve(one); }, plan_.instructions[i]);
    }
    for (const Thing& thing : things_) {
      if (const auto* run = std::get_if<Run>(&plan_.instructions[thing.instruction]))
        ran_.insert(run->kernel.index);
    }
    need(ran_.size() == graph_.kernels.size(), "a kernel that never runs");
    check_end();
  }

  void create(const Alloc& region) {
    const std::uint64_t size = round_up(graph_[region.tensor].bytes, machine_[region.tier].granularity).count;
    const Instance made{region.tensor, region.tier, region.offset, region.offset + size};
    need(made.end <= plan_.budget[region.tier.index].count, "a region beyond the budget");
    need(live_.count({region.tensor, region.tier}) == 0, "two regions of one tensor in one tier");
    for (const auto& [key, live] : live_) {
      const Instance& other = instances_[live];
      need(other.tier != made.tier || other.end <= made.begin || made.end <= other.begin,
           "regions that overlap");
    }
    live_[{region.tensor, region.tier}] = instances_.size();
    instances_.push_back(made);
  }
  std::size_t find(TensorId tensor, TierId tier) const {
    const auto found = live_.find({tensor, tier});
    need(found != live_.end(), "no region");
    return found->second;
  }

  void resolve(const Alloc& alloc) {
    create(alloc);
    touched_.back() = instances_.size() - 1;
  }
  void resolve(const Free& free) {
    touched_.back() = find(free.tensor, free.tier);
    live_.erase({free.tensor, free.tier});
  }
  void resolve(const Wait& wait) {
    thing_of_.back() = ticket(wait.ticket);
    need(waited_.insert(wait.ticket).second, "a second wait for one ticket");
  }
  void resolve(const Copy& copy) {
    need(machine_.link(copy.from, copy.to) != nullptr, "no link");
    Thing thing{position_, lane({1, copy.from.index, copy.to.index}), {}, {}, things_after(copy.after)};
    for (const TensorId tensor : copy.tensors) {
      thing.reads.push_back(find(tensor, copy.from));
      thing.writes.push_back(find(tensor, copy.to));
    }
    add(thing, copy.ticket);
  }
  void resolve(const Run& run) {
    const Kernel& kernel = graph_[run.kernel];
    Thing thing{position_, lane({0, run.engine.index, 0}), {}, {}, things_after(run.after)};
    std::map<TensorId, TierId> read_in;
    for (std::size_t i = 0; i < run.tiers.size(); ++i) {
      need(machine_.reaches(run.engine, run.tiers[i]), "an engine in a tier it does not reach");
      const bool is_input = i < kernel.inputs.size();
      const TensorId tensor =
          is_input ? kernel.inputs[i].tensor : kernel.outputs[i - kernel.inputs.size()].tensor;
      (is_input ? thing.reads : thing.writes).push_back(find(tensor, run.tiers[i]));
      if (is_input) read_in[tensor] = run.tiers[i];
      const auto read = read_in.find(tensor);
      need(is_input || read == read_in.end() || read->second == run.tiers[i],
           "a tensor read and written apart");
    }
    add(thing, run.ticket);
  }

  std::size_t lane(const std::array<std::uint32_t, 3>& name) {
    const auto [found, is_new] = lane_numbers_.emplace(name, lanes_.size());
    if (is_new) lanes_.emplace_back();
    return found->second;
  }
  void add(const Thing& thing, std::optional<std::uint32_t> ticket) {
    if (ticket) need(tickets_.emplace(*ticket, things_.size()).second, "a ticket used twice");
    thing_of_.back() = things_.size();
    lanes_[thing.lane].push_back(things_.size());
    things_.push_back(thing);
  }
  std::size_t ticket(std::uint32_t number) const {
    const auto found = tickets_.find(number);
    need(found != tickets_.end(), "a ticket that nothing has");
    return found->second;
  }
  std::vector<std::size_t> things_after(const std::vector<std::uint32_t>& tickets) const {
    std::vector<std::size_t> things;
    for (const std::uint32_t one : tickets) things.push_back(ticket(one));
    return things;
  }

  /// The regions that are there after the last instruction.
  void check_end() const {
    std::set<std::pair<TensorId, TierId>> left;
    for (const auto& [key, live] : live_) left.insert(key);
    for (const Alloc& region : plan_.start) {
      const auto found = live_.find({region.tensor, region.tier});
      need(found != live_.end() && instances_[found->second].begin == region.offset,
           "the start is not restored");
      left.erase({region.tensor, region.tier});
    }
    for (const auto& [tensor, tier] : left) need(is_result(tensor), "a region that nobody wants is left");
    for (const TensorId result : graph_.results) {
      bool at_hand = false;
      for (std::uint32_t tier = 0; tier < machine_.tiers.size(); ++tier)
        at_hand |= live_.count({result, {tier}}) > 0 && machine_.is_reached({tier});
      need(at_hand, "a result that is not at hand");
    }
  }
  bool is_result(TensorId tensor) const {
    return std::count(graph_.results.begin(), graph_.results.end(), tensor) > 0;
  }

  // ---- Every course

  bool has_ended(const State& state, std::size_t thing) const {
    const auto& queue = lanes_[things_[thing].lane];
    const auto place = static_cast<std::size_t>(std::find(queue.begin(), queue.end(), thing) - queue.begin());
    return place < state.ended[things_[thing].lane];
  }
  std::optional<std::size_t> running(const State& state, std::size_t lane) const {
    if (state.started[lane] == state.ended[lane]) return std::nullopt;
    return lanes_[lane][state.ended[lane]];
  }

  void explore(const State& first) {
    std::vector<State> todo{first};
    while (!todo.empty()) {
      const State state = std::move(todo.back());
      todo.pop_back();
      if (!seen_.insert(key(state)).second) continue;
      if (may_issue(state)) todo.push_back(issue(state));
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        if (running(state, lane)) todo.push_back(end(state, lane));
        if (may_start(state, lane)) todo.push_back(start(state, lane));
      }
    }
  }

  static std::string key(const State& state) {
    std::string text;
    const auto put = [&](Hash value) { text.append(reinterpret_cast<const char*>(&value), sizeof value); };
    put(state.issued);
    for (const auto* counts : {&state.started, &state.ended}) {
      for (const std::size_t count : *counts) put(count);
    }
    for (std::size_t i = 0; i < state.contents.size(); ++i)
      put(state.alive[i] ? state.contents[i] : ~Hash{0});
    return text;
  }

  bool may_issue(const State& state) const {
    if (state.issued > plan_.instructions.size()) return false;
    if (state.issued > 0) {
      const auto* before = std::get_if<Run>(&plan_.instructions[state.issued - 1]);
      if (before != nullptr && !before->ticket && !has_ended(state, thing_of_[state.issued - 1]))
        return false;
    }
    if (state.issued == plan_.instructions.size()) return true;  // the step's end
    const bool waits = std::holds_alternative<Wait>(plan_.instructions[state.issued]);
    return !waits || has_ended(state, thing_of_[state.issued]);
  }

  State issue(State state) const {
    if (state.issued == plan_.instructions.size()) {
      end_step(state);
    } else if (const Instruction& one = plan_.instructions[state.issued];
               std::holds_alternative<Alloc>(one)) {
      state.alive[touched_[state.issued]] = true;
    } else if (std::holds_alternative<Free>(one)) {
      const std::size_t freed = touched_[state.issued];
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        if (const auto thing = running(state, lane))
          need(!uses(*thing, freed), "a region freed while it is used");
      }
      state.alive[freed] = false;
    }
    ++state.issued;
    return state;
  }

  void end_step(const State& state) const {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
      need(state.ended[lane] == lanes_[lane].size(), "something outlives the step");
    for (const auto& [key, live] : live_) {
      const Tensor& tensor = graph_[key.first];
      if (tensor.persistent || is_result(key.first))
        need(state.contents[live] == plain_[key.first.index], "a step that leaves something else");
    }
  }

  bool may_start(const State& state, std::size_t lane) const {
    if (running(state, lane) || state.started[lane] == lanes_[lane].size()) return false;
    const Thing& thing = things_[lanes_[lane][state.started[lane]]];
    return thing.instruction < state.issued &&
           std::all_of(thing.after.begin(), thing.after.end(),
                       [&](std::size_t one) { return has_ended(state, one); });
  }

  bool uses(std::size_t thing, std::size_t instance) const {
    const Thing& it = things_[thing];
    return std::count(it.reads.begin(), it.reads.end(), instance) +
               std::count(it.writes.begin(), it.writes.end(), instance) >
           0;
  }

  State start(State state, std::size_t lane) const {
    const std::size_t number = lanes_[lane][state.started[lane]];
    const Thing& thing = things_[number];
    for (std::size_t other = 0; other < lanes_.size(); ++other) {
      const auto beside = running(state, other);
      if (!beside) continue;
      for (const std::size_t written : thing.writes)
        need(!uses(*beside, written), "written while it is used");
      for (const std::size_t written : things_[*beside].writes)
        need(!uses(number, written), "used while it is written");
    }
    for (const auto* all : {&thing.reads, &thing.writes}) {
      for (const std::size_t one : *all) need(state.alive[one], "a region used when it is gone");
    }
    const auto* run = std::get_if<Run>(&plan_.instructions[thing.instruction]);
    for (std::size_t i = 0; i < thing.reads.size(); ++i) {
      const Hash there = state.contents[thing.reads[i]];
      need(run != nullptr ? there == wanted_[run->kernel.index][i] : there != kNothing,
           "a wrong value is read");
    }
    ++state.started[lane];
    return state;
  }

  State end(State state, std::size_t lane) const {
    const Thing& thing = things_[*running(state, lane)];
    const auto* run = std::get_if<Run>(&plan_.instructions[thing.instruction]);
    std::vector<Hash> read;
    for (const std::size_t one : thing.reads) read.push_back(state.contents[one]);
    for (std::size_t i = 0; i < thing.writes.size(); ++i)
      state.contents[thing.writes[i]] = run != nullptr ? made_by(run->kernel.index, i, read) : read[i];
    ++state.ended[lane];
    return state;
  }

  static constexpr std::size_t kNone = ~std::size_t{0};
  const Graph& graph_;
  const Machine& machine_;
  const Plan& plan_;
  std::vector<Hash> plain_;                ///< by tensor, after the step
  std::vector<std::vector<Hash>> wanted_;  ///< by kernel and input
  std::vector<Instance> instances_;
  std::map<std::pair<TensorId, TierId>, std::size_t> live_;
  std::vector<Thing> things_;
  std::vector<std::vector<std::size_t>> lanes_;  ///< things in their order
  std::map<std::array<std::uint32_t, 3>, std::size_t> lane_numbers_;
  std::map<std::uint32_t, std::size_t> tickets_;
  std::set<std::uint32_t> waited_, ran_;
  std::vector<std::size_t> thing_of_, touched_;  ///< by instruction
  std::size_t position_ = 0;
  std::unordered_set<std::string> seen_;
};

}  // namespace terrace::testing
