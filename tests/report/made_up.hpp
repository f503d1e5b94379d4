// SPDX-License-Identifier: Apache-2.0
// Tensors made up for one test each.
#pragma once

#include "report/tensors.hpp"

namespace terrace {

struct MadeUp {
  std::uint64_t bytes;
  std::uint32_t first, last;
  double accesses = 2;
  std::uint32_t layers = 1;
  std::string used_in = "0 ";
};

inline std::vector<TensorFacts> facts_of(const std::vector<MadeUp>& tensors) {
  std::vector<TensorFacts> facts;
  for (const MadeUp& one : tensors)
    facts.push_back({Bytes{one.bytes}, one.first, one.last, one.layers, one.used_in, one.accesses});
  return facts;
}

}  // namespace terrace
