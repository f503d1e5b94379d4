// Checkpoints: safetensors files of tensors as they are stored, layouts and padding included. What is not a
// tensor stands in the metadata.
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <optional>

#include "data/safetensors.hpp"
#include "train/trainer_state.hpp"

namespace terrace {
namespace {

/// The keys, in the metadata, of what a step depends on beside tensors.
struct Progress {
  std::uint64_t steps = 0, seed = 0;
  float learning_rate = 0;
};

constexpr const char* kGraph = "graph";
constexpr const char* kSteps = "steps";
constexpr const char* kSeed = "seed";
constexpr const char* kLearningRate = "learning_rate_bits";  // bits, since decimals would have to be many

safetensors::Metadata describe(const Progress& progress, const Graph& graph) {
  return {{"model", graph.name},
          {kGraph, fingerprint(graph)},
          {kSteps, std::to_string(progress.steps)},
          {kSeed, std::to_string(progress.seed)},
          {kLearningRate, std::to_string(std::bit_cast<std::uint32_t>(progress.learning_rate))}};
}

template <class Number>
std::optional<Number> number(const safetensors::Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  const std::string& text = found->second;
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Progress> progress_of(const safetensors::Metadata& metadata) {
  const auto steps = number<std::uint64_t>(metadata, kSteps), seed = number<std::uint64_t>(metadata, kSeed);
  const auto rate = number<std::uint32_t>(metadata, kLearningRate);
  if (!steps || !seed || !rate) return std::nullopt;
  return Progress{*steps, *seed, std::bit_cast<float>(*rate)};
}

std::vector<TensorId> persistent(const Graph& graph) {
  std::vector<TensorId> found;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].persistent) found.push_back({i});
  }
  return found;
}

Result<Progress> check_checkpoint(const safetensors::File& file, const Graph& graph,
                                  const std::string& path) {
  const auto refuse = [&](const std::string& reason) {
    return Error{ErrorCode::invalid_argument, fmt::format("{} {}", path, reason)};
  };
  const auto progress = progress_of(file.metadata());
  const auto made_for = file.metadata().find(kGraph);
  if (!progress || made_for == file.metadata().end())
    return refuse("is not a checkpoint: name a file that save_checkpoint wrote");
  const auto other = [&] {
    return refuse(
        fmt::format("is a checkpoint of another graph than {}: continue with the model, batch, number of "
                    "threads and, where its kernels were split to fit, the fast memory it was made with",
                    graph.name));
  };
  if (made_for->second != fingerprint(graph)) return other();
  for (const TensorId id : persistent(graph)) {
    const safetensors::Tensor* stored = file.find(graph[id].name);
    if (stored == nullptr || stored->bytes.size() != graph[id].bytes.count) return other();
  }
  return *progress;
}

}  // namespace

Result<void> Trainer::start_checkpoint(const std::filesystem::path& path) {
  if (const auto before = finish_checkpoint(); !before) return before;
  state_->require_sound();
  const Progress progress{state_->steps, state_->options.seed, state_->options.learning_rate};
  state_->saving = std::make_unique<CheckpointWriter>(
      CheckpointWriter::Request{path, state_->graph(), state_->tiers, state_->now().kept,
                                describe(progress, state_->graph()), state_->options.before_each_kept});
  return {};
}

Result<void> Trainer::finish_checkpoint() {
  if (!state_->saving) return {};
  return std::exchange(state_->saving, nullptr)->finish();
}

Result<void> Trainer::save_checkpoint(const std::filesystem::path& path) {
  if (const auto started = start_checkpoint(path); !started) return started;
  return finish_checkpoint();
}

Result<void> Trainer::load_checkpoint(const std::filesystem::path& path) {
  const auto file = safetensors::read(path);
  if (!file) return file.error();
  const Graph& graph = state_->graph();
  const auto progress = check_checkpoint(*file, graph, path.string());
  if (!progress) return progress.error();
  state_->wait_for_checkpoint();
  state_->moving.reset();  // what was to be carried to another graph is overwritten
  // Until everything is loaded, some tensors are of one step and some of another.
  state_->fail("a checkpoint was loaded in part", {});
  for (const TensorId id : persistent(graph))
    state_->now().store->keep(id, file->find(graph[id].name)->bytes);
  state_->steps = progress->steps;
  state_->options.seed = progress->seed;
  state_->options.learning_rate = progress->learning_rate;
  state_->mend();
  return {};
}

}  // namespace terrace
