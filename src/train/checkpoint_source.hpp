// What a checkpoint is written from while steps go on: where each tensor's value from before a step lies, and
// until which instruction of the step it does.
#pragma once

#include <vector>

#include "exec/open_tiers.hpp"
#include "terrace/plan.hpp"

namespace terrace {

struct KeptTensor {
  TensorId tensor;
  TierAddress address;
  std::uint32_t until = 0;  ///< the first instruction that may change it; as many as there are: none does
};

/// One entry for each persistent tensor: of its regions, the one that keeps the value longest. The tensors
/// that a step changes first come first.
std::vector<KeptTensor> kept_tensors(const Graph& graph, const Plan& plan);

}  // namespace terrace
