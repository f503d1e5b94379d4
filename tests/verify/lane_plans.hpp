// SPDX-License-Identifier: Apache-2.0
// Small random plans for several lanes, about half of them safe, and changes to what puts lanes in order.
//
// A plan is written by somebody who knows what has to come after what and forgets it now and then: kernels
// run on any engine, with a ticket or without, copies go to the slow tier and back, and each thing that must
// have ended before is named in an `after`, waited for, left to the order of its lane, or forgotten.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "support/lane_machine.hpp"
#include "terrace/plan.hpp"

namespace terrace::testing {

struct LaneCase {
  Graph graph;
  Machine machine;
  Plan plan;
};

class RandomLanePlan {
 public:
  /// `care`: out of 100, how often what must come before is not forgotten. `engines`: how many the machine
  /// has.
  RandomLanePlan(std::uint64_t seed, unsigned care, std::uint32_t engines)
      : random_(seed), care_(care), engines_(engines) {}

  LaneCase run() {
    make_machine();
    make_graph();
    begin();
    for (std::uint32_t k = 0; k < made_.graph.kernels.size(); ++k) {
      run_kernel(k);
      if (chance(35)) copy_something();
    }
    end();
    return std::move(made_);
  }

 private:
  static constexpr TierId kFast{0}, kSlow{1};
  static constexpr std::uint64_t kSlot = 64;
  using Place = std::pair<TensorId, TierId>;
  /// Who uses a region, by tickets; no ticket: something that has ended.
  struct Users {
    std::set<std::uint32_t> writers, readers;
  };

  bool chance(unsigned percent) { return random_.below(100) < percent; }
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(random_.below(bound)); }
  void emit(Instruction one) { made_.plan.instructions.push_back(std::move(one)); }

  void make_machine() {
    Machine& machine = made_.machine;
    machine = lane_machine(Bytes{1 << 20}, "first");
    machine.tiers[1].addressable = chance(50);
    machine.links = {{kFast, kSlow, {{Bytes{64}, {1e9}}}}, {kSlow, kFast, {{Bytes{64}, {1e9}}}}};
    for (std::uint32_t i = 1; i < engines_; ++i) {
      add_engine(machine, 1e9, {kFast});
      if (chance(60)) machine.further_engines.back().reaches.push_back(kSlow);
    }
  }

  /// Two to four kernels over weights, which are updated in place, and values between them.
  void make_graph() {
    Graph& graph = made_.graph;
    graph.name = "lanes";
    graph.layers = {"all"};
    const std::uint32_t kernels = 2 + below(3);
    for (std::uint32_t i = 0; i < 2; ++i) tensor("w" + std::to_string(i), true);
    for (std::uint32_t k = 0; k < kernels; ++k) {
      Kernel& kernel = graph.kernels.emplace_back();
      kernel.name = "k" + std::to_string(k);
      kernel.operation = "random";
      const std::uint32_t inputs = 1 + below(2);
      for (std::uint32_t i = 0; i < inputs; ++i) {
        const TensorId input{below(graph.tensors.size())};
        if (i == 0 || kernel.inputs[0].tensor != input) kernel.inputs.push_back(operand(input));
      }
      // An update writes what it reads; other kernels make something new or write a weight anew.
      TensorId output = kernel.inputs[0].tensor;
      if (!graph[output].persistent || chance(50))
        output = chance(70) ? tensor("a" + std::to_string(k), false) : TensorId{below(2)};
      kernel.outputs.push_back(operand(output));
    }
    for (std::uint32_t i = 2; i < graph.tensors.size(); ++i) {
      if (chance(60)) graph.results.push_back({i});
    }
  }
  TensorId tensor(const std::string& name, bool persistent) {
    Tensor made;
    made.name = name;
    made.shape = {16};
    made.type = DataType::u8;
    made.bytes = Bytes{16};
    made.kind = persistent ? TensorKind::weight : TensorKind::activation;
    made.persistent = persistent;
    made_.graph.tensors.push_back(made);
    return {static_cast<std::uint32_t>(made_.graph.tensors.size() - 1)};
  }
  static Operand operand(TensorId tensor) { return {tensor, {16}, Bytes{16}, {}}; }

  // ---- The plan

  void begin() {
    Plan& plan = made_.plan;
    plan.planner = "random lanes";
    plan.budget = {Bytes{4096}, Bytes{4096}};
    for (std::uint32_t i = 0; i < 2; ++i) {
      const bool both = chance(40);
      for (const TierId tier : {kFast, kSlow}) {
        if (tier == kSlow && !both) continue;
        plan.start.push_back({{i}, tier, i * kSlot});
        current_.insert({{i}, tier});
        users_[{{i}, tier}];
      }
    }
  }

  bool exists(TensorId tensor, TierId tier) const { return users_.count({tensor, tier}) > 0; }
  void make_room(TensorId tensor, TierId tier) {
    if (exists(tensor, tier)) return;
    // A place that somebody gave up is taken again: what comes after a free shows there.
    std::uint64_t offset = tensor.index * kSlot;
    if (auto& freed = freed_[tier.index]; !freed.empty() && chance(70)) {
      offset = freed.back();
      freed.pop_back();
    }
    offsets_[{tensor, tier}] = offset;
    emit(Alloc{tensor, tier, offset});
    users_[{tensor, tier}];
  }

  /// What must have ended before the region is used.
  void must_end(std::set<std::uint32_t>& all, const Place& place, bool writes) const {
    const Users& users = users_.at(place);
    all.insert(users.writers.begin(), users.writers.end());
    if (writes) all.insert(users.readers.begin(), users.readers.end());
  }

  /// Waits for some, leaves some to their lane, forgets some, and returns the others.
  std::vector<std::uint32_t> tickets_after(const std::set<std::uint32_t>& tickets, std::uint32_t lane) {
    std::vector<std::uint32_t> after;
    for (const std::uint32_t ticket : tickets) {
      if (known_.count(ticket) > 0 || !chance(care_) || (lane_of_.at(ticket) == lane && chance(90))) continue;
      if (chance(30)) {
        wait(ticket);
      } else {
        after.push_back(ticket);
      }
    }
    if (chance(5) && next_ > 0) after.push_back(below(next_));
    return after;
  }

  void wait(std::uint32_t ticket) {
    if (!waited_.insert(ticket).second) return;
    emit(Wait{ticket});
    learn(ticket);
  }
  /// Whoever knows that a ticket is complete knows it of what was before it.
  void learn(std::uint32_t ticket) {
    if (!known_.insert(ticket).second) return;
    for (const std::uint32_t before : befores_.at(ticket)) learn(before);
  }

  void copy_to(TensorId tensor, TierId to) {
    const TierId from = to == kFast ? kSlow : kFast;
    make_room(tensor, to);
    std::set<std::uint32_t> ends;
    must_end(ends, {tensor, from}, false);
    must_end(ends, {tensor, to}, true);
    const std::uint32_t lane = 10 + to.index;
    const auto after = tickets_after(ends, lane);
    const std::uint32_t ticket = give_ticket(lane, after);
    emit(Copy{{tensor}, from, to, ticket, after});
    users_[{tensor, from}].readers.insert(ticket);
    users_[{tensor, to}] = {{ticket}, {}};
    if (current_.count({tensor, from}) > 0) current_.insert({tensor, to});
  }

  std::uint32_t give_ticket(std::uint32_t lane, const std::vector<std::uint32_t>& after) {
    const std::uint32_t ticket = next_++;
    lane_of_[ticket] = lane;
    std::vector<std::uint32_t>& before = befores_[ticket];
    before = after;
    if (const auto last = last_on_.find(lane); last != last_on_.end()) before.push_back(last->second);
    before.insert(before.end(), known_.begin(), known_.end());
    last_on_[lane] = ticket;
    return ticket;
  }

  TierId tier_for(TensorId tensor, EngineId engine) {
    const bool elsewhere = made_.machine.reaches(engine, kSlow);
    if (elsewhere && current_.count({tensor, kSlow}) > 0 && chance(70)) return kSlow;
    return kFast;
  }

  void run_kernel(std::uint32_t k) {
    const Kernel& kernel = made_.graph.kernels[k];
    const EngineId engine{below(engines_)};
    terrace::Run run{{k}, 0, {}, engine, {}, {}};
    std::set<std::uint32_t> ends;
    std::map<TensorId, TierId> tiers;
    for (const Operand& input : kernel.inputs) {
      const TierId tier = tier_for(input.tensor, engine);
      if (current_.count({input.tensor, tier}) == 0 && chance(95)) copy_to(input.tensor, tier);
      make_room(input.tensor, tier);
      tiers[input.tensor] = tier;
      run.tiers.push_back(tier);
    }
    const TensorId written = kernel.outputs[0].tensor;
    const TierId to = tiers.count(written) > 0 ? tiers[written] : kFast;
    make_room(written, to);
    run.tiers.push_back(to);
    for (const Operand& input : kernel.inputs) must_end(ends, {input.tensor, tiers[input.tensor]}, false);
    must_end(ends, {written, to}, true);
    run.after = tickets_after(ends, engine.index);
    if (chance(65)) run.ticket = give_ticket(engine.index, run.after);
    emit(run);
    if (!run.ticket) {
      for (const std::uint32_t one : run.after) learn(one);
      if (const auto last = last_on_.find(engine.index); last != last_on_.end()) learn(last->second);
    }
    for (const Operand& input : kernel.inputs) {
      if (run.ticket) users_[{input.tensor, tiers[input.tensor]}].readers.insert(*run.ticket);
    }
    users_[{written, to}] = {};
    if (run.ticket) users_[{written, to}].writers = {*run.ticket};
    current_.erase({written, to == kFast ? kSlow : kFast});
    current_.insert({written, to});
  }

  void copy_something() {
    const TensorId tensor{below(made_.graph.tensors.size())};
    const TierId to = chance(50) ? kSlow : kFast, from = to == kFast ? kSlow : kFast;
    if (current_.count({tensor, from}) > 0) copy_to(tensor, to);
  }

  bool starts(TensorId tensor, TierId tier) const {
    return std::any_of(made_.plan.start.begin(), made_.plan.start.end(),
                       [&](const Alloc& one) { return one.tensor == tensor && one.tier == tier; });
  }
  bool is_result(TensorId tensor) const {
    const auto& results = made_.graph.results;
    return std::count(results.begin(), results.end(), tensor) > 0;
  }

  void end() {
    for (const Alloc& region : std::vector<Alloc>(made_.plan.start)) {
      if (current_.count({region.tensor, region.tier}) == 0 && chance(97))
        copy_to(region.tensor, region.tier);
    }
    std::vector<Place> places;
    for (const auto& [place, users] : users_) places.push_back(place);
    for (const Place& place : places) {
      const bool stays =
          starts(place.first, place.second) || (is_result(place.first) && current_.count(place) > 0);
      if (!stays) release(place);
    }
    for (const auto& [lane, ticket] : last_on_) {
      if (known_.count(ticket) == 0 && chance(97)) wait(ticket);
    }
  }

  void release(const Place& place) {
    std::set<std::uint32_t> ends;
    must_end(ends, place, true);
    for (const std::uint32_t ticket : ends) {
      if (known_.count(ticket) == 0 && chance(care_)) wait(ticket);
    }
    emit(Free{place.first, place.second});
    freed_[place.second.index].push_back(offsets_[place]);
    users_.erase(place);
  }

  SplitMix random_;
  unsigned care_;
  std::uint32_t engines_, next_ = 0;
  LaneCase made_;
  std::map<Place, Users> users_;            ///< of regions that exist
  std::map<Place, std::uint64_t> offsets_;  ///< of regions that were made in the step
  std::set<Place> current_;                 ///< regions that hold, or will hold, the newest value
  std::vector<std::uint64_t> freed_[2];     ///< by tier: offsets that were given up
  std::set<std::uint32_t> known_, waited_;  ///< tickets that are complete for whoever issues
  std::map<std::uint32_t, std::uint32_t> lane_of_, last_on_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> befores_;
};

/// The next plan of at most `most` instructions. It moves the seed on.
inline LaneCase random_lane_case(std::uint64_t& seed, unsigned care, std::size_t most = 12) {
  while (true) {
    const std::uint64_t now = seed++;
    LaneCase made = RandomLanePlan(now, care, 1 + static_cast<std::uint32_t>(now % 3)).run();
    if (made.plan.instructions.size() <= most) return made;
  }
}

/// A change to what puts lanes in order.
enum class LaneChange { drop, move, exchange, retarget, unwait, ticket };
inline constexpr unsigned kLaneChanges = static_cast<unsigned>(LaneChange::ticket) + 1;

class LaneMutation {
 public:
  explicit LaneMutation(std::uint64_t seed) : random_(seed) {}

  /// The same plan with one such change, or as it was where there is nothing to change.
  Plan run(Plan plan, LaneChange change) {
    std::vector<std::vector<std::uint32_t>*> all, some;
    std::vector<std::uint32_t> tickets;
    for (Instruction& one : plan.instructions) {
      std::vector<std::uint32_t>* after = nullptr;
      if (auto* run = std::get_if<terrace::Run>(&one)) {
        after = &run->after;
        if (run->ticket) tickets.push_back(*run->ticket);
      } else if (auto* copy = std::get_if<Copy>(&one)) {
        after = &copy->after;
        tickets.push_back(copy->ticket);
      }
      if (after == nullptr) continue;
      all.push_back(after);
      if (!after->empty()) some.push_back(after);
    }
    if (change == LaneChange::unwait) return without_a_wait(std::move(plan));
    if (change == LaneChange::ticket) return with_other_tickets(std::move(plan));
    if (some.empty()) return plan;
    std::vector<std::uint32_t>& from = *some[random_.below(some.size())];
    std::vector<std::uint32_t>& to = *all[random_.below(all.size())];
    const std::size_t i = random_.below(from.size());
    if (change == LaneChange::exchange) {
      std::swap(from, to);
    } else if (change == LaneChange::retarget) {
      from[i] = tickets[random_.below(tickets.size())];
    } else {
      const std::uint32_t taken = from[i];
      from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
      if (change == LaneChange::move) to.push_back(taken);
    }
    return plan;
  }

 private:
  /// Drops a wait, or lets it come later.
  Plan without_a_wait(Plan plan) {
    auto& list = plan.instructions;
    std::vector<std::size_t> waits;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (std::holds_alternative<Wait>(list[i])) waits.push_back(i);
    }
    if (waits.empty()) return plan;
    const std::size_t i = waits[random_.below(waits.size())];
    const Instruction taken = list[i];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    const std::size_t to = i + random_.below(list.size() - i + 1);
    if (random_.below(2) == 0) list.insert(list.begin() + static_cast<std::ptrdiff_t>(to), taken);
    return plan;
  }

  /// Lets a kernel run beside what follows it, or on another engine.
  Plan with_other_tickets(Plan plan) {
    std::vector<terrace::Run*> runs;
    for (Instruction& one : plan.instructions) {
      if (auto* run = std::get_if<terrace::Run>(&one)) runs.push_back(run);
    }
    terrace::Run& run = *runs[random_.below(runs.size())];
    if (random_.below(2) == 0) {
      run.engine = runs[random_.below(runs.size())]->engine;
    } else if (!run.ticket) {
      run.ticket = 1000;
      plan.instructions.push_back(Wait{1000});
    }
    return plan;
  }

  SplitMix random_;
};

}  // namespace terrace::testing
