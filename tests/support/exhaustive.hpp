// SPDX-License-Identifier: Apache-2.0
// Every way of moving things in very small graphs: the oracle of bounds and of planners that search.
#pragma once

#include <limits>
#include <vector>

#include "migration/step_writer.hpp"
#include "terrace/planner.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace {

/// Memory and a disk, slow enough to matter.
inline Machine memory_and_disk(double out, double in, double loss) {
  Machine machine;
  machine.name = "small";
  machine.source = "tests";
  machine.compute = {"any", 1, 1e9};
  machine.tiers = {{"memory", Bytes{1 << 30}, true, {1e9}, {1e9}, Seconds{0}, Bytes{64}, {}, ""},
                   {"disk", Bytes{1 << 30}, false, {in}, {out}, Seconds{0}, Bytes{64}, {}, ""}};
  machine.links = {{{0}, {1}, {{Bytes{64}, {out}}}, 1, loss, 1}, {{1}, {0}, {{Bytes{64}, {in}}}, 1, loss, 1}};
  return machine;
}

/// A way to spend one eviction: its place is given up before kernel `drop` and taken again before kernel
/// `fetch`.
struct Way {
  std::uint32_t drop, fetch;
};

/// Tries all combinations of gaps, and of when each is given up and ended.
class Exhaustive {
 public:
  explicit Exhaustive(const PlanRequest& request) : request_(request), uses_(request.graph) {
    residency_.pinned.assign(request.graph.tensors.size(), false);
    for (std::size_t i = 0; i < residency_.pinned.size(); ++i) {
      residency_.pinned[i] = request.graph.tensors[i].persistent;
    }
    for (std::uint32_t k = 0; k < uses_.kernels(); ++k) {
      for (const Use& use : uses_.of(k)) {
        if (request.graph[use.tensor].persistent || use.next == kNever || !use.next_reads) continue;
        if (use.next > k + 1) possible_.push_back({use.tensor, k, k + 1, use.next, true, true});
      }
    }
  }

  std::size_t size() const { return possible_.size(); }

  Seconds best() {
    try_eviction(0);
    return best_;
  }

 private:
  void try_eviction(std::size_t eviction) {
    if (eviction == possible_.size()) return try_plan();
    try_eviction(eviction + 1);
    const Eviction& tried = possible_[eviction];
    residency_.evictions.push_back(tried);
    for (std::uint32_t drop = tried.after + 1; drop < tried.until; ++drop) {
      for (std::uint32_t fetch = drop + 1; fetch <= tried.until; ++fetch) {
        ways_.push_back({drop, fetch});
        try_eviction(eviction + 1);
        ways_.pop_back();
      }
    }
    residency_.evictions.pop_back();
  }

  void try_plan() {
    StepWriter writer(request_, uses_, residency_, "exhaustive");
    if (!writer.begin()) return;
    std::vector<std::uint32_t> tickets(ways_.size());
    for (std::uint32_t k = 0; k <= uses_.kernels(); ++k) {
      for (std::size_t i = 0; i < ways_.size(); ++i) move_before(writer, i, k, tickets[i]);
      if (k == uses_.kernels()) break;
      writer.run(k);
      for (std::size_t i = 0; i < ways_.size(); ++i) {
        if (residency_.evictions[i].after == k)
          tickets[i] = writer.store(residency_.evictions[i].tensor).value();
      }
    }
    const Draft draft = writer.finish({0});
    if (draft.needed[0] > request_.budget[0]) return;
    if (!violations(request_.graph, request_.machine, draft.plan, 1).empty()) return;
    best_ = std::min(best_, simulate(request_.graph, request_.machine, request_.profile, draft.plan).step);
  }

  void move_before(StepWriter& writer, std::size_t i, std::uint32_t kernel, std::uint32_t& ticket) {
    const Eviction& eviction = residency_.evictions[i];
    if (ways_[i].drop == kernel) {
      writer.wait(ticket);
      writer.drop(eviction.tensor);
    }
    if (ways_[i].fetch == kernel) ticket = writer.fetch(eviction.tensor);
    if (eviction.until == kernel) writer.wait(ticket);
  }

  const PlanRequest& request_;
  StepUses uses_;
  Residency residency_;
  std::vector<Eviction> possible_;
  std::vector<Way> ways_;
  Seconds best_{std::numeric_limits<double>::infinity()};
};

}  // namespace terrace
