// SPDX-License-Identifier: Apache-2.0
#include "graph/occupancy.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace {
namespace {

void note_user(std::vector<std::uint32_t>& users, std::uint32_t kernel) {
  if (users.empty() || users.back() != kernel) users.push_back(kernel);
}

}  // namespace

MemoryUse::MemoryUse(const Graph& graph) : tensors(graph.tensors.size()), of_kernel(graph.kernels.size()) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const terrace::Tensor& tensor = graph.tensors[i];
    tensors[i].bytes = static_cast<std::int64_t>(tensor.bytes.count);
    tensors[i].live_before = tensor.persistent || tensor.kind == TensorKind::input;
    tensors[i].live_after = tensor.persistent;
  }
  for (const TensorId id : graph.results) tensors[id.index].live_after = true;
  for (std::uint32_t k = 0; k < of_kernel.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    for (const Operand& in : kernel.inputs) note_user(tensors[in.tensor.index].users, k);
    for (const Operand& out : kernel.outputs) note_user(tensors[out.tensor.index].users, k);
    if (kernel.workspace) note_user(tensors[kernel.workspace.index].users, k);
  }
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    for (const std::uint32_t k : tensors[t].users) of_kernel[k].push_back(t);
  }
}

MemoryUse MemoryUse::reversed() const {
  MemoryUse result = *this;
  std::reverse(result.of_kernel.begin(), result.of_kernel.end());
  const auto last = static_cast<std::uint32_t>(of_kernel.size()) - 1;
  for (Tensor& tensor : result.tensors) {
    std::swap(tensor.live_before, tensor.live_after);
    std::reverse(tensor.users.begin(), tensor.users.end());
    for (std::uint32_t& user : tensor.users) user = last - user;
  }
  return result;
}

Occupancy::Occupancy(const MemoryUse& use)
    : use_(use),
      change_(use.of_kernel.size()),
      remaining_(use.tensors.size()),
      live_(use.tensors.size()),
      done_(use.of_kernel.size()) {
  for (std::size_t t = 0; t < use.tensors.size(); ++t) {
    const auto& tensor = use.tensors[t];
    remaining_[t] = tensor.users.size();
    live_[t] = tensor.live_before;
    if (tensor.users.empty()) continue;
    if (live_[t]) bytes_ += tensor.bytes;
    for (const std::uint32_t user : tensor.users) {
      if (!live_[t]) change_[user] += tensor.bytes;
      if (tensor.users.size() == 1 && !tensor.live_after) change_[user] -= tensor.bytes;
    }
  }
}

void Occupancy::run(std::uint32_t kernel) {
  check(!done_[kernel], "a kernel runs once");
  done_[kernel] = true;
  touched_.clear();
  for (const std::uint32_t tensor : use_.of_kernel[kernel]) make_live(tensor);
  peak_ = std::max(peak_, bytes_);
  for (const std::uint32_t tensor : use_.of_kernel[kernel]) count_use(tensor);
}

void Occupancy::make_live(std::uint32_t tensor) {
  if (live_[tensor]) return;
  live_[tensor] = true;
  const auto& [bytes, users, before, after] = use_.tensors[tensor];
  bytes_ += bytes;
  for (const std::uint32_t user : users) lower(user, bytes);
}

void Occupancy::count_use(std::uint32_t tensor) {
  const auto& [bytes, users, before, after] = use_.tensors[tensor];
  const std::size_t remaining = --remaining_[tensor];
  if (after || remaining > 1) return;
  if (remaining == 0) {
    bytes_ -= bytes;
    return;
  }
  lower(*std::find_if(users.begin(), users.end(), [&](std::uint32_t user) { return !done_[user]; }), bytes);
}

void Occupancy::lower(std::uint32_t kernel, std::int64_t bytes) {
  if (done_[kernel]) return;
  change_[kernel] -= bytes;
  touched_.push_back(kernel);
}

}  // namespace terrace
