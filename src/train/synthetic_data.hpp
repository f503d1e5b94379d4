// SyntheticData: inputs of the right shape and range for any graph. Numbers are normally distributed; labels
// and tokens are uniform over the classes or the vocabulary of whoever reads them.
#pragma once

#include <string>
#include <vector>

#include "train/training_data.hpp"

namespace terrace {

class SyntheticData final : public TrainingData {
 public:
  /// pre: integer inputs are labels of a loss or indices of an embedding
  SyntheticData(const Graph& graph, std::uint64_t seed);

  void fill(std::uint64_t step, Trainer& trainer) override;

 private:
  struct Input {
    std::string name;
    std::int32_t bound = 0;  ///< integers are below it; 0: not integers
  };

  std::uint64_t seed_;
  std::vector<Input> inputs_;
};

}  // namespace terrace
