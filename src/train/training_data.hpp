// Where the inputs of a step come from.
//
// They are a function of the seed and the step's number alone, so a run that is repeated, on other memory or
// under another plan, sees the same data. One thread at a time.
#pragma once

#include "terrace/trainer.hpp"

namespace terrace {

class TrainingData {
 public:
  TrainingData() = default;
  TrainingData(const TrainingData&) = delete;
  TrainingData& operator=(const TrainingData&) = delete;
  virtual ~TrainingData() = default;

  /// Fills every input of the graph. pre: `trainer` trains the graph this was made for
  virtual void fill(std::uint64_t step, Trainer& trainer) = 0;
};

}  // namespace terrace
