// SPDX-License-Identifier: Apache-2.0
#include "capi/executor.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "capi/guard.hpp"
#include "exec/caller_runner.hpp"
#include "exec/runner.hpp"
#include "pipeline/plan_row.hpp"
#include "terrace/foreign.hpp"

namespace terrace::capi {

void require_zero(int answer, const char* what, std::uint32_t index) {
  if (answer != 0) throw CallbackEnded(fmt::format("the callback {} ended the step at {}", what, index));
}

std::uint32_t variant_number(const Kernel& kernel, std::string_view name) {
  std::uint32_t variant = 0;
  while (variant < kernel.variants.size() && kernel.variants[variant].name != name) ++variant;
  return variant;
}

std::shared_ptr<const Backend> backend_of(const Graph& graph, const terrace_callbacks& callbacks) {
  const auto run = [&graph, callbacks](const ForeignRun& asked) {
    std::vector<terrace_operand> operands;
    for (const auto side : {asked.inputs, asked.outputs}) {
      for (const std::span<std::byte> operand : side) operands.push_back({operand.data(), operand.size()});
    }
    if (!asked.workspace.empty()) operands.push_back({asked.workspace.data(), asked.workspace.size()});
    const auto kernel = static_cast<std::uint32_t>(&asked.kernel - graph.kernels.data());
    const std::uint32_t variant = variant_number(asked.kernel, asked.variant);
    require_zero(callbacks.run(callbacks.user, kernel, variant, operands.data(), operands.size()), "run",
                 kernel);
  };
  std::map<std::string, ForeignKernel> by_operation;
  for (const Kernel& kernel : graph.kernels) by_operation[kernel.operation] = run;
  return foreign_backend(std::move(by_operation));
}

StoredExecutor::StoredExecutor(Record record, VerifiedPlan plan, const terrace_callbacks& callbacks,
                               KernelsOn kernels)
    : record_(std::move(record)), plan_(std::move(plan)), backend_(backend_of(record_.graph, callbacks)) {
  expect(backend_->lower(record_.graph, 1));  // fails where a tensor's layout is one of our own kernels'
  tiers_ = expect(OpenTiers::open({record_.model, record_.machine, plan_->budget, {}, kernels}));
  store_ = std::make_unique<Store>(*backend_, record_.graph, record_.machine, plan_.plan(), tiers_);
}

const Tensor& StoredExecutor::kept(TensorId tensor) const {
  if (tensor.index >= record_.graph.tensors.size())
    throw std::invalid_argument(fmt::format("there is no tensor {}", tensor.index));
  if (store_->addresses(tensor).empty()) {
    throw std::invalid_argument(
        fmt::format("tensor {} has no place between steps", record_.graph[tensor].name));
  }
  return record_.graph[tensor];
}

namespace {

void require_bytes(const Tensor& asked, std::size_t bytes) {
  if (bytes == asked.bytes.count) return;
  throw std::invalid_argument(
      fmt::format("tensor {} has {} bytes and {} were given", asked.name, asked.bytes.count, bytes));
}

void require_part(const Tensor& asked, std::uint64_t begin, std::size_t bytes) {
  if (begin <= asked.bytes.count && bytes <= asked.bytes.count - begin) return;
  throw std::invalid_argument(fmt::format("tensor {} has {} bytes and {} from {} on were asked for",
                                          asked.name, asked.bytes.count, bytes, begin));
}

}  // namespace

void StoredExecutor::write(TensorId tensor, std::span<const std::byte> from) {
  require_bytes(kept(tensor), from.size());
  store_->keep(tensor, from);
}
void StoredExecutor::read(TensorId tensor, std::span<std::byte> to) {
  require_bytes(kept(tensor), to.size());
  store_->load(tensor, to);
}
void StoredExecutor::write_part(TensorId tensor, std::uint64_t begin, std::span<const std::byte> from) {
  require_part(kept(tensor), begin, from.size());
  store_->keep_part(tensor, begin, from);
}
void StoredExecutor::read_part(TensorId tensor, std::uint64_t begin, std::span<std::byte> to) {
  require_part(kept(tensor), begin, to.size());
  store_->load_part(tensor, begin, to);
}
void* StoredExecutor::address(TensorId tensor) const {
  kept(tensor);
  return store_->memory(tensor);
}

namespace {

class HostExecutor final : public StoredExecutor {
 public:
  HostExecutor(Record record, const VerifiedPlan& plan, const terrace_callbacks& callbacks)
      : StoredExecutor(std::move(record), plan, callbacks, KernelsOn::host),
        kernels_(backend_->instantiate(record_.graph)),
        runner_(resolve(record_.graph, record_.machine, plan_.plan(), tiers_), plan_->instructions.size(),
                tiers_, kernels_) {}

  void step() override {
    runner_.step(context_);
    ++context_.step;
  }
  const Timeline& timeline() const override { return runner_.timeline(); }

 private:
  const Kernels kernels_;
  Runner runner_;
  StepContext context_;
};

CallerMemory memory_of(const Graph& graph, const terrace_callbacks& callbacks) {
  std::vector<Bytes> bytes;
  for (const Tensor& tensor : graph.tensors) bytes.push_back(tensor.bytes);
  const auto placed = [](void* address, const char* what, TensorId tensor) {
    require_zero(address == nullptr ? 1 : 0, what, tensor.index);
    return static_cast<std::byte*>(address);
  };
  return {[callbacks](const Run& run) {
            require_zero(callbacks.run(callbacks.user, run.kernel.index, run.variant, nullptr, 0), "run",
                         run.kernel.index);
          },
          [callbacks, placed, bytes](TensorId tensor, CallerMemory::Filled filled) {
            const int by_transfer = filled == CallerMemory::Filled::by_transfer ? 1 : 0;
            void* address =
                callbacks.alloc(callbacks.user, tensor.index, bytes[tensor.index].count, by_transfer);
            return placed(address, "alloc", tensor);
          },
          [callbacks](TensorId tensor) {
            require_zero(callbacks.release(callbacks.user, tensor.index), "release", tensor.index);
          },
          [callbacks, placed](TensorId tensor) {
            return placed(callbacks.address(callbacks.user, tensor.index), "address", tensor);
          }};
}

class CallerExecutor final : public terrace_executor {
 public:
  CallerExecutor(Record record, const VerifiedPlan& plan, const terrace_callbacks& callbacks)
      : record_(std::move(record)),
        runner_(expect(
            CallerRunner::open(record_.graph, record_.machine, plan, memory_of(record_.graph, callbacks)))) {}

  void write(TensorId tensor, std::span<const std::byte> from) override {
    expect(runner_->write(tensor, from));
  }
  void read(TensorId tensor, std::span<std::byte> to) override { expect(runner_->read(tensor, to)); }
  void write_part(TensorId, std::uint64_t, std::span<const std::byte>) override { refuse_parts(); }
  void read_part(TensorId, std::uint64_t, std::span<std::byte>) override { refuse_parts(); }
  void* address(TensorId) const override { return nullptr; }
  void step() override { runner_->step(); }
  const Timeline& timeline() const override { return runner_->timeline(); }
  const Record& record() const override { return record_; }
  const Plan& plan() const override { return *record_.plan; }

 private:
  [[noreturn]] static void refuse_parts() {
    throw std::invalid_argument("parts of tensors are written and read where the library has all memory");
  }

  const Record record_;
  const std::unique_ptr<CallerRunner> runner_;
};

std::unique_ptr<terrace_executor> opened(const char* text, const terrace_callbacks& callbacks) {
  Record record = expect(record_from_json(text));
  if (!record.plan) throw std::invalid_argument("the record is one without a plan: plan first");
  require(callbacks.run != nullptr, "an executor wants a callback that runs kernels");
  const bool alloc = callbacks.alloc != nullptr, release = callbacks.release != nullptr,
             address = callbacks.address != nullptr;
  require(alloc == release && alloc == address,
          "alloc, release and address are given together or not at all");
  const VerifiedPlan plan = expect(verify(record.graph, record.machine, *record.plan));
  if (alloc) return std::make_unique<CallerExecutor>(std::move(record), plan, callbacks);
  if (is_for_device(record.machine)) return device_executor(std::move(record), plan, callbacks);
  return std::make_unique<HostExecutor>(std::move(record), plan, callbacks);
}

nlohmann::json result_of(const terrace_executor& executor) {
  const Record& record = executor.record();
  const Timeline& timeline = executor.timeline();
  std::vector<double> kernels(record.graph.kernels.size());
  const auto& instructions = executor.plan().instructions;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (const auto* run = std::get_if<Run>(&instructions[i]))
      kernels[run->kernel.index] += timeline.instructions[i].length().count();
  }
  return {{"step_seconds", timeline.step.count()},
          {"exposed_seconds", timeline.exposed.count()},
          {"moved_bytes", moved_json(record.machine, timeline.moved)},
          {"peak_bytes", peak_json(record.machine, timeline.peak)},
          {"kernel_seconds", kernels}};
}

}  // namespace
}  // namespace terrace::capi

void terrace_executor::bundle(std::span<const std::uint32_t>) {
  throw terrace::ResultError(
      {terrace::ErrorCode::unsupported,
       "kernels are bundled where they are issued to a device's queues, and these run on "
       "the host"});
}

using namespace terrace::capi;

int terrace_executor_open(const char* record, const terrace_callbacks* callbacks,
                          terrace_executor** executor) {
  return guarded([&] {
    require(record != nullptr && callbacks != nullptr && executor != nullptr,
            "an executor wants a record, callbacks and a place");
    *executor = opened(record, *callbacks).release();
  });
}

void terrace_executor_close(terrace_executor* executor) {
  guarded([&] { delete executor; });
}

int terrace_executor_write(terrace_executor* executor, uint32_t tensor, const void* from, uint64_t bytes) {
  return guarded([&] {
    require(executor != nullptr && from != nullptr, "an executor and bytes are wanted");
    executor->write({tensor}, {static_cast<const std::byte*>(from), bytes});
  });
}

int terrace_executor_read(terrace_executor* executor, uint32_t tensor, void* to, uint64_t bytes) {
  return guarded([&] {
    require(executor != nullptr && to != nullptr, "an executor and a place are wanted");
    executor->read({tensor}, {static_cast<std::byte*>(to), bytes});
  });
}

int terrace_executor_write_part(terrace_executor* executor, uint32_t tensor, uint64_t begin, const void* from,
                                uint64_t bytes) {
  return guarded([&] {
    require(executor != nullptr && from != nullptr, "an executor and bytes are wanted");
    executor->write_part({tensor}, begin, {static_cast<const std::byte*>(from), bytes});
  });
}

int terrace_executor_read_part(terrace_executor* executor, uint32_t tensor, uint64_t begin, void* to,
                               uint64_t bytes) {
  return guarded([&] {
    require(executor != nullptr && to != nullptr, "an executor and a place are wanted");
    executor->read_part({tensor}, begin, {static_cast<std::byte*>(to), bytes});
  });
}

int terrace_executor_address(const terrace_executor* executor, uint32_t tensor, void** address) {
  return guarded([&] {
    require(executor != nullptr && address != nullptr, "an executor and a place are wanted");
    *address = executor->address({tensor});
  });
}

void* terrace_executor_queue(const terrace_executor* executor) {
  return executor == nullptr ? nullptr : executor->queue();
}

int terrace_executor_bundle(terrace_executor* executor, const uint32_t* kernels, size_t count) {
  return guarded([&] {
    require(executor != nullptr && (kernels != nullptr || count == 0), "an executor and kernels are wanted");
    executor->bundle({kernels, count});
  });
}

int terrace_executor_step(terrace_executor* executor) {
  return guarded([&] {
    require(executor != nullptr, "an executor is wanted");
    executor->step();
  });
}

int terrace_executor_result(const terrace_executor* executor, char** json) {
  return guarded([&] {
    require(executor != nullptr && json != nullptr, "an executor and a place are wanted");
    *json = copied(result_of(*executor).dump());
  });
}
