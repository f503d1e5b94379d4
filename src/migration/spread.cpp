// SPDX-License-Identifier: Apache-2.0
#include "migration/spread.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.hpp"
#include "graph/variant.hpp"
#include "plan/region_size.hpp"

namespace terrace {
namespace {

/// Names a region: a tensor has at most one in each tier.
using RegionKey = std::pair<TensorId, TierId>;

/// The regions a run reads and those it writes.
struct Uses {
  std::vector<RegionKey> reads, writes;

  Uses(const Graph& graph, const Run& run) {
    const Kernel& kernel = graph[run.kernel];
    const std::size_t inputs = kernel.inputs.size();
    for (std::size_t i = 0; i < inputs; ++i) reads.emplace_back(kernel.inputs[i].tensor, run.tiers[i]);
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i)
      writes.emplace_back(kernel.outputs[i].tensor, run.tiers[inputs + i]);
    if (kernel.workspace && !runs_without_workspace(kernel, run.variant))
      writes.emplace_back(kernel.workspace, run.tiers.back());
  }
};

std::uint32_t next_ticket(const Plan& plan) {
  std::uint32_t next = 0;
  for (const Instruction& one : plan.instructions) {
    if (const auto* copy = std::get_if<Copy>(&one)) next = std::max(next, copy->ticket + 1);
  }
  return next;
}

class Spreading {
 public:
  Spreading(const Graph& graph, const Machine& machine, Plan plan,
            const std::function<EngineId(KernelId)>& engine_of)
      : graph_(graph),
        machine_(machine),
        plan_(std::move(plan)),
        engine_of_(engine_of),
        next_(next_ticket(plan_)),
        lanes_(machine.engine_count()) {}

  Plan run() && {
    for (const Alloc& region : plan_.start) offsets_[{region.tensor, region.tier}] = region.offset;
    const std::vector<Instruction> before = std::exchange(plan_.instructions, {});
    for (const Instruction& one : before) std::visit([this](const auto& what) { add(what); }, one);
    while (!late_.empty()) end_late(late_.begin());
    for (const Lane& lane : lanes_) {
      if (lane.known < lane.tickets.size()) wait(lane.tickets.back());
    }
    return std::move(plan_);
  }

 private:
  /// Runs of one engine, by their tickets in the order of issue, and how many of them are known to have
  /// ended.
  struct Lane {
    std::vector<std::uint32_t> tickets;
    std::size_t known = 0;
  };
  /// A run on another engine: which one of its lane.
  struct Runner {
    std::uint32_t engine;
    std::size_t number;
  };
  struct Users {
    std::vector<Runner> writers, readers;
  };
  using LateFrees = std::vector<Free>;

  void emit(Instruction one) { plan_.instructions.push_back(std::move(one)); }
  bool is_known(const Runner& runner) const { return runner.number < lanes_[runner.engine].known; }

  /// Tickets of runs that may still use the region, the last of each engine.
  std::set<std::uint32_t> pending(const std::vector<RegionKey>& read, const std::vector<RegionKey>& written,
                                  std::optional<std::uint32_t> but_on = {}) const {
    std::map<std::uint32_t, std::size_t> last;
    const auto look_at = [&](const std::vector<Runner>& runners) {
      for (const Runner& one : runners) {
        if (is_known(one) || one.engine == but_on) continue;
        auto& number = last[one.engine];
        number = std::max(number, one.number);
      }
    };
    for (const auto* regions : {&read, &written}) {
      for (const RegionKey& region : *regions) {
        const auto users = users_.find(region);
        if (users == users_.end()) continue;
        look_at(users->second.writers);
        if (regions == &written) look_at(users->second.readers);
      }
    }
    std::set<std::uint32_t> tickets;
    for (const auto& [engine, number] : last) tickets.insert(lanes_[engine].tickets[number]);
    return tickets;
  }

  /// A lane works in order: the runs before have ended, too.
  void wait(std::uint32_t ticket) {
    emit(Wait{ticket});
    for (Lane& lane : lanes_) {
      const auto it = std::find(lane.tickets.begin() + static_cast<std::ptrdiff_t>(lane.known),
                                lane.tickets.end(), ticket);
      if (it != lane.tickets.end()) lane.known = static_cast<std::size_t>(it - lane.tickets.begin()) + 1;
    }
  }
  void wait_for(const std::set<std::uint32_t>& tickets) {
    for (const std::uint32_t ticket : tickets) wait(ticket);
  }

  std::uint64_t end_of(const RegionKey& region) const {
    return offsets_.at(region) + region_size(graph_[region.first], machine_[region.second]).count;
  }
  void end_late(LateFrees::iterator late) {
    const RegionKey region{late->tensor, late->tier};
    wait_for(pending({}, {region}));
    emit(*late);
    offsets_.erase(region);
    users_.erase(region);
    late_.erase(late);
  }

  void add(const Alloc& alloc) {
    const RegionKey region{alloc.tensor, alloc.tier};
    const std::uint64_t end = alloc.offset + region_size(graph_[alloc.tensor], machine_[alloc.tier]).count;
    for (auto it = late_.begin(); it != late_.end();) {
      const RegionKey other{it->tensor, it->tier};
      const bool overlaps =
          it->tier == alloc.tier && offsets_.at(other) < end && alloc.offset < end_of(other);
      if (!overlaps && other != region) {
        ++it;
        continue;
      }
      end_late(it);
      it = late_.begin();
    }
    offsets_[region] = alloc.offset;
    emit(alloc);
  }

  void add(const Free& free) {
    const RegionKey region{free.tensor, free.tier};
    if (!pending({}, {region}).empty()) {
      late_.push_back(free);
      return;
    }
    emit(free);
    offsets_.erase(region);
    users_.erase(region);
  }

  void add(const Copy& copy) {
    std::vector<RegionKey> from, to;
    for (const TensorId tensor : copy.tensors) {
      from.emplace_back(tensor, copy.from);
      to.emplace_back(tensor, copy.to);
    }
    Copy made = copy;
    const auto tickets = pending(from, to);
    made.after.assign(tickets.begin(), tickets.end());
    emit(std::move(made));
  }

  void add(const Wait& wait) { emit(wait); }

  void add(const Run& run) {
    const Uses uses(graph_, run);
    const EngineId engine = engine_of_(run.kernel);
    Run made = run;
    if (engine == EngineId{}) {
      wait_for(pending(uses.reads, uses.writes));
      emit(std::move(made));
      return;
    }
    check(engine.index < lanes_.size(), "the machine has the engine");
    const auto tickets = pending(uses.reads, uses.writes, engine.index);
    made.after.assign(tickets.begin(), tickets.end());
    made.engine = engine;
    made.ticket = next_++;
    const Runner runner{engine.index, lanes_[engine.index].tickets.size()};
    lanes_[engine.index].tickets.push_back(*made.ticket);
    emit(std::move(made));
    for (const RegionKey& region : uses.reads) users_[region].readers.push_back(runner);
    for (const RegionKey& region : uses.writes) users_[region].writers.push_back(runner);
  }

  const Graph& graph_;
  const Machine& machine_;
  Plan plan_;
  const std::function<EngineId(KernelId)>& engine_of_;
  std::uint32_t next_;
  std::vector<Lane> lanes_;                     ///< by engine
  std::map<RegionKey, Users> users_;            ///< on other engines, of regions that exist
  std::map<RegionKey, std::uint64_t> offsets_;  ///< of regions that exist, or are freed late
  LateFrees late_;
};

}  // namespace

Plan spread(const Graph& graph, const Machine& machine, Plan plan,
            const std::function<EngineId(KernelId)>& engine_of) {
  return Spreading(graph, machine, std::move(plan), engine_of).run();
}

namespace {

/// Writes a plan's instructions again, with some frees later than they were.
class LateFrees {
 public:
  LateFrees(const Graph& graph, Plan& plan, const std::function<bool(KernelId)>& is_moved,
            std::uint32_t kernels)
      : graph_(graph), written_(plan.instructions), is_moved_(is_moved), kernels_(kernels) {}

  void run() {
    const std::vector<Instruction> before = std::exchange(written_, {});
    const auto is_run = [](const Instruction& one) { return std::holds_alternative<Run>(one); };
    const auto last = std::find_if(before.rbegin(), before.rend(), is_run).base();
    for (auto one = before.begin(); one != last; ++one)
      std::visit([this](const auto& what) { add(what); }, *one);
    // Regions of the start are made again behind the last kernel, where nothing else is left.
    free_those([](const Late&) { return true; });
    written_.insert(written_.end(), last, before.end());
  }

 private:
  struct Late {
    Free free;
    std::uint32_t left;  ///< kernels that are to run before it
  };

  template <class Condition>
  void free_those(Condition condition) {
    std::erase_if(late_, [&](const Late& late) {
      if (!condition(late)) return false;
      written_.push_back(late.free);
      return true;
    });
  }

  void add(const Alloc& alloc) {
    free_those(
        [&](const Late& late) { return late.free.tensor == alloc.tensor && late.free.tier == alloc.tier; });
    written_.push_back(alloc);
  }
  void add(const Free& free) {
    if (used_.erase({free.tensor, free.tier}) > 0) {
      late_.push_back({free, kernels_});
    } else {
      written_.push_back(free);
    }
  }
  void add(const Copy& copy) { written_.push_back(copy); }
  void add(const Wait& wait) { written_.push_back(wait); }
  void add(const Run& run) {
    written_.push_back(run);
    if (is_moved_(run.kernel)) {
      const Uses uses(graph_, run);
      used_.insert(uses.reads.begin(), uses.reads.end());
      used_.insert(uses.writes.begin(), uses.writes.end());
      return;
    }
    for (Late& late : late_) --late.left;
    free_those([](const Late& late) { return late.left == 0; });
  }

  const Graph& graph_;
  std::vector<Instruction>& written_;
  const std::function<bool(KernelId)>& is_moved_;
  const std::uint32_t kernels_;
  std::set<RegionKey> used_;  ///< by kernels that are moved, since the region was made
  std::vector<Late> late_;
};

}  // namespace

Plan with_late_frees(const Graph& graph, Plan plan, const std::function<bool(KernelId)>& is_moved,
                     std::uint32_t kernels) {
  LateFrees(graph, plan, is_moved, kernels).run();
  return plan;
}

}  // namespace terrace
