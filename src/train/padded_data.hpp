// PaddedData: synthetic sequences whose length changes from step to step, padded to the graph that the
// trainer has at the time. Padding holds token 0, and its targets do not count in the loss.
#pragma once

#include "data/lengths.hpp"
#include "train/synthetic_data.hpp"

namespace terrace {

class PaddedData final : public TrainingData {
 public:
  /// `axis`: the dimension of `tokens` and `target` that is the sequence's.
  /// pre: the integer inputs of the graph, and of every other that is trained, are sequences
  PaddedData(const Graph& graph, std::uint64_t seed, Lengths lengths, std::size_t axis);

  std::int64_t length(std::uint64_t step) const { return lengths_.of(step, seed_); }
  /// pre: the trainer's graph is for sequences at least as long as the step's
  void fill(std::uint64_t step, Trainer& trainer) override;

 private:
  SyntheticData data_;
  std::uint64_t seed_;
  Lengths lengths_;
  std::size_t axis_;
};

}  // namespace terrace
