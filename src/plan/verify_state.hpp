// One run of the verifier: a plan on abstract state, where a region is its place and the number of the value
// it holds (verify_values.hpp).
//
// After a violation it goes on as if the instruction had done what it was meant to do, as far as that is
// possible, so that one mistake is reported once.
#pragma once

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
  /// What a transfer carries: one tensor's region to another region of it.
  struct Piece {
    AbstractRegion *from, *to;
    std::uint32_t from_generation, to_generation;
    ValueNumber value;
  };
  struct Transfer {
    std::uint32_t ticket;
    bool waited = false;
    std::vector<Piece> pieces = {};
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

  // verify_run.cpp: operands of kernels.
  void read_input(const Kernel& kernel, TensorId tensor, TierId tier, ValueNumber wanted);
  void write_to(const Kernel& kernel, TensorId tensor, TierId tier, const char* does);
  const AbstractRegion* usable_region(const Kernel& kernel, TensorId tensor, TierId tier, const char* does);
  void stays_in_place(const Kernel& kernel, const Run& run, std::size_t output);
  void use_workspace(const Kernel& kernel, const Run& run);
  bool fits_the_kernel(const Run& run);
  /// Kernels of a token run once, in the graph's order.
  void take_tokens(KernelId kernel);

  bool known(TensorId tensor);
  bool known(TierId tier);
  void place(const Alloc& region);
  bool is_linked(TierId from, TierId to) const {
    return linked_[from.index * machine_.tiers.size() + to.index];
  }
  void lies_beside(const Copy& copy, std::size_t index);
  Piece start_piece(TensorId tensor, const Copy& copy);

  const std::string& name(TensorId tensor) const { return graph_[tensor].name; }
  const std::string& name(TierId tier) const { return machine_[tier].name; }

  const Graph& graph_;
  const Machine& machine_;
  const Plan& plan_;
  const std::size_t limit_;
  const Values values_;
  AbstractRegions regions_;
  std::vector<bool> linked_;   ///< from tier by tier
  std::vector<bool> has_run_;  ///< by kernel
  /// By token: the kernels that use it, in the graph's order, and how many of them have run.
  struct TokenUses {
    std::vector<KernelId> kernels = {};
    std::size_t done = 0;
  };
  std::unordered_map<std::uint32_t, TokenUses> tokens_;
  std::vector<bool> is_result_;  ///< by tensor
  std::vector<Alloc> start_;     ///< what of plan.start is possible
  std::vector<Transfer> transfers_;
  std::unordered_map<std::uint32_t, std::size_t> tickets_;  ///< the place in transfers_
  std::size_t position_ = 0;                                ///< of the instruction at work
  Moment moment_ = Moment::start;
  std::vector<Violation> violations_;
};

/// For messages: how a value came to be.
std::string value_text(ValueNumber value);

}  // namespace terrace
