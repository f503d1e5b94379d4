// SPDX-License-Identifier: Apache-2.0
// Trained networks in files: written and read tensor by tensor.
#include <fmt/format.h>

#include <cstring>

#include "data/safetensors.hpp"
#include "graph/parts.hpp"
#include "train/trainer_state.hpp"

namespace terrace {
namespace {

/// Returns the tensors that belong to a trained network; states of the optimizer do not.
std::vector<WholeTensor> saved_tensors(const Graph& graph) {
  std::vector<WholeTensor> saved = whole_tensors(graph);
  std::erase_if(saved, [&](const WholeTensor& whole) {
    const TensorKind kind = graph[whole.parts.front()].kind;
    return kind != TensorKind::weight && kind != TensorKind::statistics;
  });
  return saved;
}

std::vector<std::uint64_t> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace

Result<void> Trainer::save_weights(const std::filesystem::path& path) const {
  state_->require_sound();
  std::vector<safetensors::Tensor> tensors;
  for (const WholeTensor& whole : saved_tensors(state_->graph()))
    tensors.push_back({whole.name, safetensors::DType::f32, extents(whole.shape), {}});
  std::vector<float> values;
  return safetensors::write(path, tensors,
                            {{"model", state_->graph().name}, {"steps", std::to_string(state_->steps)}},
                            [&](std::size_t i, std::uint64_t) {
                              if (i == tensors.size()) return std::span<const std::byte>{};
                              values = {};  // before the next is read, so that there is one at a time
                              values = read(tensors[i].name);
                              return std::as_bytes(std::span(values));
                            });
}

Result<void> Trainer::load_weights(const std::filesystem::path& path) {
  state_->require_sound();
  auto file = safetensors::read(path);
  if (!file) return file.error();
  // Everything is checked before anything is changed.
  std::vector<std::pair<std::string, const safetensors::Tensor*>> found;
  for (const WholeTensor& tensor : saved_tensors(state_->graph())) {
    const safetensors::Tensor* stored = file->find(tensor.name);
    if (stored == nullptr) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} holds no {}: it is not a file of weights of {}", path.string(),
                               tensor.name, state_->graph().name)};
    }
    if (stored->dtype != safetensors::DType::f32 || stored->shape != extents(tensor.shape)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} in {} is not F32 {}: it belongs to another network", tensor.name,
                               path.string(), to_string(tensor.shape))};
    }
    found.emplace_back(tensor.name, stored);
  }
  for (const auto& [name, stored] : found) {
    std::vector<float> values(stored->bytes.size() / sizeof(float));
    std::memcpy(values.data(), stored->bytes.data(), stored->bytes.size());
    write(name, values);
  }
  return {};
}

}  // namespace terrace
