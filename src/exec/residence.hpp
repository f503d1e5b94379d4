// Residence: which regions exist while a plan's instructions pass one by one.
#pragma once

#include <optional>
#include <vector>

#include "exec/open_tiers.hpp"
#include "terrace/plan.hpp"

namespace terrace {

class Residence {
 public:
  /// Begins with the state before the first instruction. Graph and machine outlive this.
  Residence(const Graph& graph, const Machine& machine, const Plan& plan);

  void apply(const Instruction& instruction);

  /// pre: the tensor has a region there
  TierAddress address(TensorId tensor, TierId tier) const;
  /// How many bytes a region of the tensor takes in that tier.
  Bytes size(TensorId tensor, TierId tier) const;
  /// Where the tensor has regions, the fastest tier first.
  std::vector<TierAddress> addresses(TensorId tensor) const;
  /// The most bytes of regions at once so far, by tier.
  const std::vector<Bytes>& peak() const { return peak_; }

 private:
  std::optional<std::uint64_t>& offset(TensorId tensor, TierId tier);
  void apply(const Alloc& alloc);
  void apply(const Free& free);
  void apply(const Copy&) {}
  void apply(const Wait&) {}
  void apply(const Run&) {}

  const Graph& graph_;
  const Machine& machine_;
  std::vector<std::optional<std::uint64_t>> offsets_;  // of each tensor in each tier
  std::vector<Bytes> held_, peak_;
};

}  // namespace terrace
