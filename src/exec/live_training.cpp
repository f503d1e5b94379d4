// SPDX-License-Identifier: Apache-2.0
#include "exec/live_training.hpp"

#include <chrono>
#include <utility>

#include "exec/initialise.hpp"
#include "graph/layer_steps.hpp"
#include "graph/variant.hpp"

namespace terrace {
namespace {

/// A tensor without bytes lies in no tier; kernels are given this address in place of one.
alignas(64) std::byte nowhere[64];

/// Makes a plan that holds only the tensors that outlive steps, one behind the other.
Plan persistent_tensors(const Graph& graph, Bytes alignment) {
  Plan plan;
  Bytes end{0};
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (!graph.tensors[i].persistent) continue;
    plan.start.push_back({{i}, {0}, end.count});
    end += round_up(graph.tensors[i].bytes, alignment);
  }
  plan.budget = {std::max(end, Bytes{1})};
  return plan;
}

Machine memory_of(Bytes bytes, Bytes alignment) {
  Machine machine;
  machine.name = "memory";
  machine.tiers.resize(1);
  machine.tiers[0].name = "dram";
  machine.tiers[0].granularity = alignment;
  machine.tiers[0].capacity = bytes;
  machine.tiers[0].spec = "dram:" + to_string(bytes);
  return machine;
}

}  // namespace

LiveTraining::LiveTraining(const Program& program, Manager& manager, std::uint64_t seed)
    : program_(program),
      graph_(program.graph),
      manager_(manager),
      uses_(program.graph),
      kernels_(program.backend->instantiate(program.graph)),
      objects_(graph_.tensors.size()),
      memory_(graph_.tensors.size(), nowhere),
      tiers_(graph_.tensors.size()),
      results_(graph_.results.size()) {
  program.backend->use_threads(program.threads);
  for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i)
    if (graph_.tensors[i].persistent) create({i}).value();
  initialise(seed);
}

LiveTraining::~LiveTraining() {
  for (const std::optional<ObjectId>& object : objects_)
    if (object) manager_.destroy(*object);
}

/// Weights are laid out as kernels want them in memory of their own, and then handed to the manager.
void LiveTraining::initialise(std::uint64_t seed) {
  const Plan plan = persistent_tensors(graph_, program_.alignment);
  const Machine machine = memory_of(plan.budget[0], program_.alignment);
  const OpenTiers tiers = OpenTiers::open({graph_.name, machine, plan.budget}).value();
  const Store store(*program_.backend, graph_, machine, plan, tiers);
  terrace::initialise(graph_, seed, store);
  for (const auto& start : plan.start) {
    if (!objects_[start.tensor.index]) continue;
    const Pin pin = manager_.pin(*objects_[start.tensor.index], Access::write).value();
    store.load(start.tensor, {pin.data(), graph_[start.tensor].bytes.count});
  }
}

Result<void> LiveTraining::create(TensorId tensor) {
  if (graph_[tensor].bytes.count == 0) return {};
  const auto object = manager_.create(graph_[tensor].bytes);
  if (!object) return object.error();
  objects_[tensor.index] = *object;
  return {};
}

Result<void> LiveTraining::create_inputs(const Fill& fill) {
  for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
    if (!is_given(graph_.tensors[i]) || graph_.tensors[i].bytes.count == 0) continue;
    if (auto made = create({i}); !made) return made;
    auto pin = manager_.pin(*objects_[i], Access::write);
    if (!pin) return pin.error();
    fill(graph_.tensors[i], {pin->data(), graph_.tensors[i].bytes.count});
  }
  return {};
}

Result<void> LiveTraining::step(const StepContext& context, const Fill& fill) {
  computing_ = Seconds{0};
  if (auto made = create_inputs(fill); !made) return made;
  manager_.step_begin();
  for (std::uint32_t kernel = 0; kernel < uses_.kernels(); ++kernel) {
    if (auto announced = announce(kernel); !announced) return announced;
    {
      const auto pins = hold(kernel);
      if (!pins) return pins.error();
      compute(kernel, context);
    }
    leave(kernel);
  }
  if (auto read = read_results(); !read) return read;
  end();
  manager_.step_end();
  return {};
}

Result<void> LiveTraining::announce(std::uint32_t kernel) {
  for (const Use& use : uses_.of(kernel))
    if (!use.writes && objects_[use.tensor.index]) manager_.will_read(*objects_[use.tensor.index]);
  for (const Use& use : uses_.of(kernel)) {
    if (!use.writes) continue;
    if (!objects_[use.tensor.index]) {
      if (auto made = create(use.tensor); !made) return made;
    }
    if (!objects_[use.tensor.index]) continue;
    use.reads ? manager_.will_use(*objects_[use.tensor.index])
              : manager_.will_write(*objects_[use.tensor.index]);
  }
  return {};
}

Result<std::vector<Pin>> LiveTraining::hold(std::uint32_t kernel) {
  std::vector<Pin> pins;
  for (const Use& use : uses_.of(kernel)) {
    if (!objects_[use.tensor.index]) continue;
    auto pin = manager_.pin(*objects_[use.tensor.index], use.writes ? Access::write : Access::read);
    if (!pin) return pin.error();
    memory_[use.tensor.index] = pin->data();
    tiers_[use.tensor.index] = pin->tier();
    pins.push_back(*std::move(pin));
  }
  return pins;
}

/// Variant 0 is the one that a run with all memory takes.
void LiveTraining::compute(std::uint32_t k, const StepContext& context) {
  const Kernel& kernel = graph_.kernels[k];
  std::vector<std::byte*> operands;
  std::vector<Bytes> read(manager_.tiers()), written(manager_.tiers());
  for (const Operand& input : kernel.inputs) {
    operands.push_back(memory_[input.tensor.index]);
    read[tiers_[input.tensor.index].index] += input.touched;
  }
  for (const Operand& output : kernel.outputs) {
    operands.push_back(memory_[output.tensor.index]);
    written[tiers_[output.tensor.index].index] += output.touched;
  }
  if (runs_without_workspace(kernel, 0)) {
    operands.push_back(nullptr);
  } else if (kernel.workspace) {
    operands.push_back(memory_[kernel.workspace.index]);
    read[tiers_[kernel.workspace.index].index] += graph_[kernel.workspace].bytes;
    written[tiers_[kernel.workspace.index].index] += graph_[kernel.workspace].bytes;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto since = [&] { return Seconds(std::chrono::steady_clock::now() - start); };
  kernels_[k][0]->run(operands, context);
  const Seconds took = since();
  for (std::uint32_t tier = 0; tier < manager_.tiers(); ++tier)
    if (manager_.tier({tier}).description().read_rate != BytesPerSecond{})
      manager_.tier({tier}).charge(read[tier], written[tier], took);
  computing_ += since();
}

void LiveTraining::leave(std::uint32_t kernel) {
  const Kernel& what = graph_.kernels[kernel];
  for (const Use& use : uses_.of(kernel)) {
    std::optional<ObjectId>& object = objects_[use.tensor.index];
    if (!object) continue;
    if (use.tensor == what.workspace) {
      manager_.destroy(*std::exchange(object, std::nullopt));
    } else if (use.next == kNever && !graph_[use.tensor].persistent) {
      manager_.retire(*std::exchange(object, std::nullopt));
    } else if (rests_after(what, use)) {
      manager_.archive(*object);
    }
  }
  if (ends_layer_step(graph_, kernel)) manager_.layer_end();
}

Result<void> LiveTraining::read_results() {
  for (std::size_t i = 0; i < graph_.results.size(); ++i) {
    const auto& object = objects_[graph_.results[i].index];
    if (!object) continue;
    const auto pin = manager_.pin(*object, Access::read);
    if (!pin) return pin.error();
    results_[i].assign(pin->data(), pin->data() + graph_[graph_.results[i]].bytes.count);
  }
  return {};
}

/// Results and unused inputs end with the step.
void LiveTraining::end() {
  for (std::uint32_t i = 0; i < objects_.size(); ++i)
    if (objects_[i] && !graph_.tensors[i].persistent)
      manager_.retire(*std::exchange(objects_[i], std::nullopt));
}

}  // namespace terrace
