// SPDX-License-Identifier: Apache-2.0
// Kernels of the caller on the queues of a device. On a fake device, which has no library of its own to
// launch kernels with, the callback is what the device runs, in whatever order its adversary chooses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/fake_ranges.hpp"
#include "capi/executor.hpp"
#include "capi/guard.hpp"
#include "exec/queue_runner.hpp"
#include "terrace/foreign.hpp"
#include "tiers/fake_device.hpp"

namespace terrace::capi {
namespace {

class DeviceExecutor final : public StoredExecutor {
 public:
  DeviceExecutor(Record record, const VerifiedPlan& plan, const terrace_callbacks& callbacks)
      : StoredExecutor(std::move(record), plan, callbacks, KernelsOn::device),
        callbacks_(callbacks),
        fake_(dynamic_cast<FakeDevice*>(tiers_.device())),
        launches_(launching_backend()),
        kernels_(launches_->instantiate(record_.graph)),
        host_kernels_(backend_->instantiate(record_.graph)),
        runner_({record_.graph, record_.machine, plan_, tiers_, by_engine()}) {
    timeline_.instructions.resize(plan_->instructions.size());
    timeline_.moved = runner_.script().moved;
    timeline_.peak = runner_.script().peak;
  }

  void* address(TensorId tensor) const override {
    kept(tensor);
    for (const TierAddress& place : store_->addresses(tensor)) {
      if (tiers_.is_on_device(place.tier)) return usable(tiers_.device_address(place));
    }
    return nullptr;
  }
  void* queue() const override { return queue_; }

  void bundle(std::span<const std::uint32_t> kernels) override {
    const std::set<std::uint32_t> wanted(kernels.begin(), kernels.end());
    ended_.reset();
    try {
      runner_.bundle([&](std::uint32_t kernel) { return wanted.contains(kernel); }, context_);
    } catch (...) {
      if (!ended_) throw;
    }
    if (ended_) throw CallbackEnded(*ended_);
  }

  void step() override {
    ended_.reset();
    try {
      runner_.step(context_);
    } catch (...) {
      if (!ended_) throw;
    }
    if (ended_) throw CallbackEnded(*ended_);
    if (fake_ != nullptr && !fake_->violations().empty())
      throw std::logic_error(fmt::format("on a fake device: {}", fmt::join(fake_->violations(), "; ")));
    ++context_.step;
    timeline_.step = runner_.times().step;
  }
  const Timeline& timeline() const override { return timeline_; }

 private:
  /// Turns a device's address into the pointer that callbacks get. The bytes of a fake device lie in memory,
  /// so there it is an ordinary pointer.
  void* usable(DeviceAddress address) const {
    if (fake_ != nullptr) return fake_->bytes_at(address);
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address.value));
  }

  std::shared_ptr<const Backend> launching_backend() {
    const auto launch = [this](const ForeignLaunch& asked) { start(asked); };
    std::map<std::string, ForeignLauncher> by_operation;
    for (const Kernel& kernel : record_.graph.kernels) by_operation[kernel.operation] = launch;
    return foreign_device_backend(std::move(by_operation));
  }

  std::vector<const Kernels*> by_engine() const {
    std::vector<const Kernels*> kernels;
    for (std::uint32_t i = 0; i < record_.machine.engine_count(); ++i) {
      const bool on_device = record_.machine.reaches(EngineId{i}, TierId{0});
      kernels.push_back(on_device ? &kernels_ : &host_kernels_);
    }
    return kernels;
  }

  void start(const ForeignLaunch& asked) {
    std::vector<DeviceBytes> operands(asked.inputs.begin(), asked.inputs.end());
    operands.insert(operands.end(), asked.outputs.begin(), asked.outputs.end());
    if (asked.workspace.size.count > 0) operands.push_back(asked.workspace);
    const auto kernel = static_cast<std::uint32_t>(&asked.kernel - record_.graph.kernels.data());
    const std::uint32_t variant = variant_number(asked.kernel, asked.variant);
    if (fake_ == nullptr) {
      queue_ = asked.queue.native();
      call(kernel, variant, operands);
      queue_ = nullptr;
      if (ended_) throw CallbackEnded(*ended_);
      return;
    }
    const std::span workspace(&asked.workspace, asked.workspace.size.count > 0 ? 1 : 0);
    FakeRanges writes = fake_ranges(asked.outputs);
    for (const FakeRange& range : fake_ranges(workspace)) writes.push_back(range);
    fake_->launch(asked.queue, fake_ranges(asked.inputs), std::move(writes),
                  [this, kernel, variant, operands] { call(kernel, variant, operands); });
  }

  /// After a callback has ended the step, no other one is called in it.
  void call(std::uint32_t kernel, std::uint32_t variant, const std::vector<DeviceBytes>& operands) {
    if (ended_) return;
    std::vector<terrace_operand> given;
    for (const DeviceBytes& one : operands)
      given.push_back({one.size.count > 0 ? usable(one.address) : nullptr, one.size.count});
    try {
      require_zero(callbacks_.run(callbacks_.user, kernel, variant, given.data(), given.size()), "run",
                   kernel);
    } catch (const CallbackEnded& end) {
      ended_ = end.what();
    }
  }

  const terrace_callbacks callbacks_;
  FakeDevice* const fake_;  // nullptr where the device is a real one
  const std::shared_ptr<const Backend> launches_;
  const Kernels kernels_, host_kernels_;
  StepContext context_;
  void* queue_ = nullptr;
  std::optional<std::string> ended_;
  Timeline timeline_;
  QueueRunner runner_;  // last: what it has issued uses the others
};

}  // namespace

bool is_for_device(const Machine& machine) {
  const auto spec = parse_tier_spec(machine.tiers.front().spec);
  return spec && lies_on_device(*spec);
}

std::unique_ptr<terrace_executor> device_executor(Record record, const VerifiedPlan& plan,
                                                  const terrace_callbacks& callbacks) {
  return std::make_unique<DeviceExecutor>(std::move(record), plan, callbacks);
}

}  // namespace terrace::capi
