// SPDX-License-Identifier: Apache-2.0
#include "graph/dependences.hpp"

#include <algorithm>

namespace terrace {
namespace {

struct Accesses {
  KernelId writer;                     ///< the last one so far
  std::vector<std::uint32_t> readers;  ///< since then
};

void sort_unique(std::vector<std::uint32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

std::vector<std::vector<std::uint32_t>> mirrored(const std::vector<std::vector<std::uint32_t>>& lists) {
  const auto last = static_cast<std::uint32_t>(lists.size()) - 1;
  std::vector<std::vector<std::uint32_t>> result(lists.rbegin(), lists.rend());
  for (auto& list : result) {
    std::reverse(list.begin(), list.end());
    for (std::uint32_t& position : list) position = last - position;
  }
  return result;
}

}  // namespace

Dependences::Dependences(const Graph& graph) : before_(graph.kernels.size()), after_(graph.kernels.size()) {
  std::vector<Accesses> accesses(graph.tensors.size());
  for (std::uint32_t k = 0; k < before_.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    auto& before = before_[k];
    for (const Operand& in : kernel.inputs) {
      Accesses& tensor = accesses[in.tensor.index];
      if (tensor.writer) before.push_back(tensor.writer.index);
      tensor.readers.push_back(k);
    }
    for (const Operand& out : kernel.outputs) {
      Accesses& tensor = accesses[out.tensor.index];
      if (tensor.writer) before.push_back(tensor.writer.index);
      before.insert(before.end(), tensor.readers.begin(), tensor.readers.end());
      tensor = {KernelId{k}, {}};
    }
    sort_unique(before);
    // What works in place is among the readers it waits for.
    if (!before.empty() && before.back() == k) before.pop_back();
    for (const std::uint32_t earlier : before) after_[earlier].push_back(k);
  }
}

Dependences Dependences::reversed() const {
  Dependences result;
  result.before_ = mirrored(after_);
  result.after_ = mirrored(before_);
  return result;
}

}  // namespace terrace
