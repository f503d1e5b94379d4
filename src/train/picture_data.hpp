// SPDX-License-Identifier: Apache-2.0
// PictureData: shuffled batches of labelled pictures for graphs that classify them.
//
// A batch that is worked on in parts has the same pictures as one that is not.
#pragma once

#include "data/batches.hpp"
#include "train/training_data.hpp"

namespace terrace {

/// Returns whether the inputs of a graph are pictures as Fashion-MNIST has them, and their classes.
bool takes_fashion_mnist(const Graph& graph);

class PictureData final : public TrainingData {
 public:
  /// pre: takes_fashion_mnist(graph), its batch is at most pictures.count(), and `pictures` outlives this
  PictureData(const Graph& graph, const LabelledImages& pictures, std::uint64_t seed);

  void fill(std::uint64_t step, Trainer& trainer) override;

 private:
  std::vector<std::string> images_, labels_;  ///< the inputs, part by part
  Batches batches_;
  std::vector<float> pixels_;
  std::vector<std::int32_t> classes_;
};

}  // namespace terrace
