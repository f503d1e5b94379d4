// SPDX-License-Identifier: Apache-2.0
#include "terrace/foreign.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "backends/backend.hpp"
#include "backends/queued_kernel.hpp"
#include "base/check.hpp"
#include "graph/variant.hpp"

namespace terrace {
namespace {

class CallbackKernel final : public RunnableKernel {
 public:
  CallbackKernel(const Graph& graph, const Kernel& kernel, std::uint32_t variant,
                 const ForeignKernel& callback)
      : kernel_(kernel), callback_(callback) {
    if (!kernel.variants.empty()) variant_ = kernel.variants[variant].name;
    for (const Operand& input : kernel.inputs) inputs_.emplace_back(nobody(), size(graph, input.tensor));
    for (const Operand& output : kernel.outputs) outputs_.emplace_back(nobody(), size(graph, output.tensor));
    if (kernel.workspace && !runs_without_workspace(kernel, variant))
      workspace_ = size(graph, kernel.workspace);
  }

  void run(std::span<std::byte* const> operands, const StepContext& context) override {
    std::byte* const* next = operands.data();
    for (auto* side : {&inputs_, &outputs_}) {
      for (std::span<std::byte>& operand : *side) operand = {*next++, operand.size()};
    }
    std::span<std::byte> workspace;
    if (workspace_ > 0) workspace = {operands[inputs_.size() + outputs_.size()], workspace_};
    callback_({kernel_, inputs_, outputs_, workspace, variant_, context.seed, context.step});
  }

 private:
  static std::byte* nobody() { return nullptr; }
  static std::size_t size(const Graph& graph, TensorId id) { return graph[id].bytes.count; }

  const Kernel& kernel_;
  std::string_view variant_;
  const ForeignKernel& callback_;
  std::vector<std::span<std::byte>> inputs_, outputs_;
  std::size_t workspace_ = 0;
};

class LauncherKernel final : public QueuedKernel {
 public:
  LauncherKernel(const Graph& graph, const Kernel& kernel, std::uint32_t variant,
                 const ForeignLauncher& launcher)
      : kernel_(kernel), launcher_(launcher) {
    if (!kernel.variants.empty()) variant_ = kernel.variants[variant].name;
    for (const Operand& input : kernel.inputs) inputs_.push_back({{}, graph[input.tensor].bytes});
    for (const Operand& output : kernel.outputs) outputs_.push_back({{}, graph[output.tensor].bytes});
    if (kernel.workspace && !runs_without_workspace(kernel, variant))
      workspace_.size = graph[kernel.workspace].bytes;
  }

  void enqueue(std::span<const DeviceAddress> operands, const StepContext& context,
               DeviceQueue& queue) override {
    const DeviceAddress* next = operands.data();
    for (DeviceBytes& input : inputs_) input.address = *next++;
    for (DeviceBytes& output : outputs_) output.address = *next++;
    if (workspace_.size.count > 0) workspace_.address = *next;
    launcher_({kernel_, inputs_, outputs_, workspace_, variant_, context.seed, context.step, queue});
  }

 private:
  const Kernel& kernel_;
  std::string_view variant_;
  const ForeignLauncher& launcher_;
  std::vector<DeviceBytes> inputs_, outputs_;
  DeviceBytes workspace_;
};

template <class Callback>
struct KernelOf;
template <>
struct KernelOf<ForeignKernel> {
  using type = CallbackKernel;
};
template <>
struct KernelOf<ForeignLauncher> {
  using type = LauncherKernel;
};

template <class Callback>
class ForeignBackend final : public Backend {
 public:
  ForeignBackend(std::map<std::string, Callback> callbacks, std::string version)
      : callbacks_(std::move(callbacks)), version_(std::move(version)) {
    for (const auto& [operation, callback] : callbacks_)
      check(static_cast<bool>(callback), "every operation has a function");
  }

  Result<Graph> lower(const Graph& graph, unsigned /*threads*/) const override {
    for (const Kernel& kernel : graph.kernels) {
      if (can_run(kernel)) continue;
      std::vector<std::string_view> known;
      for (const auto& [operation, callback] : callbacks_) known.push_back(operation);
      return Error{ErrorCode::unsupported,
                   fmt::format("kernel {} does {}, for which no callback was given; there are: {}",
                               kernel.name, kernel.operation, fmt::join(known, ", "))};
    }
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.layout.empty()) continue;
      return Error{ErrorCode::unsupported,
                   fmt::format("tensor {} has the layout {}, and callbacks take row-major tensors",
                               tensor.name, tensor.layout)};
    }
    return graph;
  }

  Kernels instantiate(const Graph& graph) const override {
    Kernels kernels;
    for (const Kernel& kernel : graph.kernels) {
      auto& variants = kernels.emplace_back();
      for (std::uint32_t i = 0; i < variant_count(kernel); ++i)
        variants.push_back(std::make_unique<Runnable>(graph, kernel, i, callback(kernel)));
    }
    return kernels;
  }
  std::unique_ptr<RunnableKernel> instantiate(const Graph& graph, const Kernel& kernel) const override {
    return std::make_unique<Runnable>(graph, kernel, 0, callback(kernel));
  }

  void use_threads(unsigned /*threads*/) const override {}
  bool can_run(const Kernel& kernel) const override { return callbacks_.count(kernel.operation) != 0; }
  std::string version() const override { return fmt::format("callbacks {}", version_); }

 private:
  using Runnable = typename KernelOf<Callback>::type;

  const Callback& callback(const Kernel& kernel) const {
    const auto found = callbacks_.find(kernel.operation);
    check(found != callbacks_.end(), "every operation of a lowered graph has a callback");
    return found->second;
  }

  const std::map<std::string, Callback> callbacks_;
  const std::string version_;
};

}  // namespace

std::shared_ptr<const Backend> foreign_backend(std::map<std::string, ForeignKernel> by_operation,
                                               std::string version) {
  return std::make_shared<ForeignBackend<ForeignKernel>>(std::move(by_operation), std::move(version));
}

std::shared_ptr<const Backend> foreign_device_backend(std::map<std::string, ForeignLauncher> by_operation,
                                                      std::string version) {
  return std::make_shared<ForeignBackend<ForeignLauncher>>(std::move(by_operation), std::move(version));
}

}  // namespace terrace
