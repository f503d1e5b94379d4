// SPDX-License-Identifier: Apache-2.0
// One run of the verifier: a plan on abstract state, where a region is its place, the number of the value it
// holds (verify_values.hpp), who wrote it last and who reads it (verify_lanes.hpp).
//
// Whatever order lanes work in, two things that use one region, and one of them writes it, come in the order
// of issue: the later one starts only when the earlier one is known to have ended. So every course of the
// step that lanes allow leaves the values that the order of issue leaves, and one pass over it proves them
// all. Two such things in no order could happen at once: no safe plan is refused.
//
// After a violation it goes on as if the instruction had done what it was meant to do, as far as that is
// possible, so that one mistake is reported once.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/verify_regions.hpp"
#include "plan/verify_values.hpp"
#include "terrace/verify.hpp"

namespace terrace {

class Verification {
 public:
  /// pre: validate(graph), validate(machine)
  Verification(const Graph& graph, const Machine& machine, const Plan& plan, std::size_t limit);
  std::vector<Violation> run();

  // The instructions, each as it changes the state.
  void operator()(const Alloc& alloc);
  void operator()(const Free& free);
  void operator()(const Copy& copy);
  void operator()(const Wait& wait);
  void operator()(const Run& run);

 private:
  /// What a ticket stands for.
  struct Ticket {
    std::uint32_t number;
    LaneEvent event;
    LaneClocks::Clock ended;  ///< what is known when it is complete
    bool waited = false;
  };

  bool full() const { return violations_.size() >= limit_; }
  void report(std::string reason);

  // verify_ends.cpp: what must hold before the first instruction and after the last.
  bool budget_fits();
  void begin();
  void begin_with(const Alloc& region);
  void has_its_start(TensorId tensor);
  void end();
  void ends_as_it_began(const Alloc& start);
  void result_is_at_hand(TensorId tensor);

  // verify_tickets.cpp: what happens beside what.
  /// Puts the instruction at work on its lane.
  void issue(std::uint32_t lane, const std::vector<std::uint32_t>& after);
  void give_ticket(std::uint32_t ticket);
  /// Who fills a region that may not have ended at that clock: `a transfer fills`, if anybody does.
  std::optional<std::string> filling(const AbstractRegion& region, const LaneClocks::Clock& clock) const;
  std::optional<std::string> reading(TensorId tensor, TierId tier, const LaneClocks::Clock& clock) const;
  std::string user(LaneEvent event) const;

  // verify_run.cpp: operands of kernels.
  void read_input(const Kernel& kernel, const Run& run, std::size_t input, ValueNumber wanted);
  void write_to(const Kernel& kernel, EngineId engine, TensorId tensor, TierId tier, const char* does);
  const AbstractRegion* usable_region(const Kernel& kernel, EngineId engine, TensorId tensor, TierId tier,
                                      const char* does);
  void stays_in_place(const Kernel& kernel, const Run& run, std::size_t output);
  void use_workspace(const Kernel& kernel, const Run& run);
  bool fits_the_kernel(const Run& run);
  void use_operands(const Kernel& kernel, const Run& run);
  /// Kernels of a token run once, in the graph's order.
  void take_tokens(KernelId kernel);

  bool known(TensorId tensor);
  bool known(TierId tier);
  void place(const Alloc& region);
  bool is_linked(TierId from, TierId to) const {
    return linked_[from.index * machine_.tiers.size() + to.index];
  }
  void lies_beside(const Copy& copy, std::size_t index);
  bool carry(TensorId tensor, const Copy& copy);

  const std::string& name(TensorId tensor) const { return graph_[tensor].name; }
  const std::string& name(TierId tier) const { return machine_[tier].name; }

  const Graph& graph_;
  const Machine& machine_;
  const Plan& plan_;
  const std::size_t limit_;
  const Values values_;
  LaneClocks clocks_;
  AbstractRegions regions_;
  std::vector<bool> linked_;   ///< from tier by tier
  std::vector<bool> has_run_;  ///< by kernel
  /// By token: the kernels that use it, in the graph's order, and how many of them have run.
  struct TokenUses {
    std::vector<KernelId> kernels = {};
    std::size_t done = 0;
    LaneEvent last = {};
  };
  std::unordered_map<std::uint32_t, TokenUses> tokens_;
  std::vector<bool> is_result_;  ///< by tensor
  std::vector<Alloc> start_;     ///< what of plan.start is possible
  std::vector<Ticket> tickets_;
  std::unordered_map<std::uint32_t, std::size_t> ticket_places_;  ///< in tickets_
  std::vector<std::vector<std::size_t>> issued_on_;               ///< by lane: the instructions there
  LaneEvent at_work_;                                             ///< the event of the instruction at work
  std::size_t position_ = 0;                                      ///< of the instruction at work
  Moment moment_ = Moment::start;
  std::vector<Violation> violations_;
};

/// For messages: how a value came to be.
std::string value_text(ValueNumber value);

}  // namespace terrace
