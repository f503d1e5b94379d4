#include "terrace/trainer.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <cstring>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/memory_limit.hpp"
#include "data/safetensors.hpp"
#include "exec/initialise.hpp"
#include "kernels/cpu/instantiate.hpp"
#include "terrace/tier.hpp"

namespace terrace {

struct Trainer::State {
  Program program;
  TrainerOptions options;
  std::unique_ptr<Tier> tier;
  cpu::Kernels kernels;
  std::vector<std::vector<std::byte*>> operands;  ///< of each kernel
  std::uint64_t steps = 0;

  std::byte* at(TensorId id) const { return tier->memory() + program.offsets[id.index]; }
  StepContext context() const { return {options.seed, steps, options.learning_rate}; }

  TensorId find(std::string_view name) const {
    const TensorId id = find_tensor(program.graph, name);
    check(static_cast<bool>(id), "there is a tensor of that name");
    return id;
  }

  void bind_operands() {
    for (const Kernel& kernel : program.graph.kernels) {
      std::vector<std::byte*> pointers;
      for (const Operand& operand : kernel.inputs) pointers.push_back(at(operand.tensor));
      for (const Operand& operand : kernel.outputs) pointers.push_back(at(operand.tensor));
      if (kernel.workspace) pointers.push_back(at(kernel.workspace));
      operands.push_back(std::move(pointers));
    }
  }

  std::vector<float> read(TensorId id) const {
    std::vector<float> values(static_cast<std::size_t>(program.graph[id].shape.elements()));
    cpu::to_row_major(program.graph, id, at(id), reinterpret_cast<std::byte*>(values.data()));
    return values;
  }
};

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

Result<Trainer> Trainer::start(Program program, const TrainerOptions& options) {
  const MemoryLimit limit = memory_limit();
  if (program.arena > limit.available) {
    return Error{
        ErrorCode::too_large,
        fmt::format("{} needs {} of memory and {} is available ({}): take a smaller batch",
                    program.graph.name, readable(program.arena), readable(limit.available), limit.source)};
  }
  auto state = std::make_unique<State>();
  omp_set_num_threads(static_cast<int>(program.threads));
  TierSpec spec;
  spec.capacity = std::max(program.arena, Bytes{1});
  spec.huge_pages = true;
  auto tier = open_tier(spec);
  if (!tier) return tier.error();
  state->tier = std::move(*tier);
  state->program = std::move(program);
  state->options = options;
  state->kernels = cpu::instantiate(state->program.graph);
  state->bind_operands();
  initialise(state->program, options.seed, state->tier->memory());
  return Trainer(std::move(state));
}

const Program& Trainer::program() const { return state_->program; }
std::uint64_t Trainer::steps_done() const { return state_->steps; }
void Trainer::set_learning_rate(float rate) { state_->options.learning_rate = rate; }

std::span<float> Trainer::input(std::string_view name) {
  const TensorId id = state_->find(name);
  check(state_->program.graph[id].type == DataType::f32, "this input holds floating-point numbers");
  return {reinterpret_cast<float*>(state_->at(id)),
          static_cast<std::size_t>(state_->program.graph[id].shape.elements())};
}

std::span<std::int32_t> Trainer::integer_input(std::string_view name) {
  const TensorId id = state_->find(name);
  check(state_->program.graph[id].type == DataType::i32, "this input holds integers");
  return {reinterpret_cast<std::int32_t*>(state_->at(id)),
          static_cast<std::size_t>(state_->program.graph[id].shape.elements())};
}

void Trainer::step() {
  const StepContext context = state_->context();
  for (std::size_t i = 0; i < state_->kernels.size(); ++i)
    state_->kernels[i]->run(state_->operands[i], context);
  ++state_->steps;
}

void Trainer::step(std::span<Seconds> times) {
  check(times.size() == state_->kernels.size(), "there is one time for each kernel");
  const StepContext context = state_->context();
  for (std::size_t i = 0; i < state_->kernels.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    state_->kernels[i]->run(state_->operands[i], context);
    times[i] += std::chrono::steady_clock::now() - start;
  }
  ++state_->steps;
}

std::vector<float> Trainer::result(std::size_t index) const {
  check(index < state_->program.graph.results.size(), "the graph has that many results");
  return state_->read(state_->program.graph.results[index]);
}

std::vector<float> Trainer::read(std::string_view name) const {
  const TensorId id = state_->find(name);
  check(state_->program.graph[id].persistent, "only what outlives a step can be read between steps");
  return state_->read(id);
}

void Trainer::write(std::string_view name, std::span<const float> values) {
  const TensorId id = state_->find(name);
  const Tensor& tensor = state_->program.graph[id];
  check(tensor.persistent && static_cast<std::int64_t>(values.size()) == tensor.shape.elements(),
        "a persistent tensor is written whole");
  cpu::from_row_major(state_->program.graph, id, reinterpret_cast<const std::byte*>(values.data()),
                      state_->at(id));
}

namespace {

/// What a trained network is: states of the optimizer are not part of it.
bool is_saved(const Tensor& tensor) {
  return tensor.persistent && (tensor.kind == TensorKind::weight || tensor.kind == TensorKind::statistics);
}

std::vector<std::uint64_t> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace

Result<void> Trainer::save_weights(const std::filesystem::path& path) const {
  std::vector<std::vector<float>> values;
  std::vector<safetensors::Tensor> tensors;
  for (const Tensor& tensor : state_->program.graph.tensors) {
    if (!is_saved(tensor)) continue;
    values.push_back(read(tensor.name));
    tensors.push_back({tensor.name, safetensors::DType::f32, extents(tensor.shape),
                       std::as_bytes(std::span(values.back()))});
  }
  return safetensors::write(
      path, tensors, {{"model", state_->program.graph.name}, {"steps", std::to_string(state_->steps)}});
}

Result<void> Trainer::load_weights(const std::filesystem::path& path) {
  auto file = safetensors::read(path);
  if (!file) return file.error();
  // All is checked before anything is changed.
  std::vector<std::pair<const Tensor*, const safetensors::Tensor*>> found;
  for (const Tensor& tensor : state_->program.graph.tensors) {
    if (!is_saved(tensor)) continue;
    const safetensors::Tensor* stored = file->find(tensor.name);
    if (stored == nullptr) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} holds no {}: it is not a file of weights of {}", path.string(),
                               tensor.name, state_->program.graph.name)};
    }
    if (stored->dtype != safetensors::DType::f32 || stored->shape != extents(tensor.shape)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} in {} is not F32 {}: it belongs to another network", tensor.name,
                               path.string(), to_string(tensor.shape))};
    }
    found.emplace_back(&tensor, stored);
  }
  for (const auto& [tensor, stored] : found) {
    std::vector<float> values(stored->bytes.size() / sizeof(float));
    std::memcpy(values.data(), stored->bytes.data(), stored->bytes.size());
    write(tensor->name, values);
  }
  return {};
}

}  // namespace terrace
