// SPDX-License-Identifier: Apache-2.0
// A graph, a machine with a device, and a plan for them; carried out by queues and by the synchronous runner.
//
// Kernels mix: any byte that is wrong anywhere makes all that follows from it wrong. `Kept` is what a step
// leaves: persistent tensors wherever the plan keeps them, and results.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/synthetic/synthetic.hpp"
#include "exec/queue_runner.hpp"
#include "exec/runner.hpp"
#include "support/random_graph.hpp"
#include "support/random_plan.hpp"
#include "terrace/error.hpp"
#include "tiers/cuda.hpp"
#include "tiers/fake.hpp"
#include "tiers/fake_device.hpp"

namespace terrace {

using Kept = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>>;  // by tensor and tier
using Schedule = FakeDevice::Schedule;

/// The tier kernels use first, then those named: `pinned`, `dram` (not pinned), `blocks`, `device` (a second
/// one on the same device).
inline Machine device_machine(const std::vector<std::string>& slower, bool pinned_in_place = false) {
  Machine machine;
  machine.name = "device";
  machine.source = "tests";
  machine.compute = {"any", 1, 1e11};
  const auto add = [&](const std::string& name, const std::string& spec, bool addressable,
                       std::uint64_t granule) {
    MachineTier tier;
    tier.name = name + std::to_string(machine.tiers.size());
    tier.capacity = Bytes{1ULL << 30U};
    tier.addressable = addressable;
    tier.read = tier.write = {1e11 / static_cast<double>(1 + machine.tiers.size())};
    tier.granularity = Bytes{granule};
    tier.spec = spec;
    machine.tiers.push_back(tier);
  };
  add("device", "fake:1MiB,device", true, 256);
  for (const std::string& name : slower) {
    if (name == "pinned") add(name, "pinned:1MiB", pinned_in_place, 256);
    if (name == "dram") add(name, "dram:1MiB", false, 64);
    if (name == "blocks") add(name, "fake:1MiB,blocks", false, 512);
    if (name == "device") add(name, "fake:1MiB,device", true, 256);
  }
  for (std::uint32_t from = 0; from < machine.tiers.size(); ++from) {
    for (std::uint32_t to = 0; to < machine.tiers.size(); ++to) {
      if (from != to) machine.links.push_back({{from}, {to}, {{Bytes{1 << 20}, {1e9}}}});
    }
  }
  return machine;
}

inline Machine random_device_machine(std::uint64_t seed) {
  static const std::vector<std::vector<std::string>> kinds{
      {"pinned"},
      {"pinned", "blocks"},
      {"device", "pinned"},
      {"pinned", "dram", "blocks"},
      {"dram"},
      {"blocks"},
      {"device", "blocks"},
      {"pinned", "pinned"},
      {"pinned", "device"},
      {"device", "pinned", "blocks"},
  };
  return device_machine(kinds[seed % kinds.size()], seed % 3 == 0);
}

inline RandomGraphOptions small_graph() {
  RandomGraphOptions options;
  options.kernels = 10;
  options.most = Bytes{3000};
  return options;
}

struct Planned {
  Graph graph;
  Machine machine;
  VerifiedPlan plan;
};

inline Planned planned(Graph graph, Machine machine, std::uint64_t seed) {
  Plan plan = random_plan(graph, machine, random_budget(graph, machine, seed), seed);
  plan.machine = fingerprint(machine);
  VerifiedPlan verified = verify(graph, machine, std::move(plan)).value();
  return {std::move(graph), std::move(machine), std::move(verified)};
}

inline Planned random_planned(std::uint64_t seed) {
  return planned(random_graph(small_graph(), seed), random_device_machine(seed), seed);
}

inline std::vector<std::byte> given(const Graph& graph, std::uint32_t tensor, std::uint64_t step) {
  std::vector<std::byte> bytes(graph.tensors[tensor].bytes.count);
  const std::span<std::byte> all[] = {bytes};
  mix_on_host({}, all, tensor * 1000 + step);
  return bytes;
}

/// What both runners share: opened tiers, filled before each step and read after it.
class PlannedTiers {
 public:
  PlannedTiers(const Planned& planned, OpenTiers tiers) : planned_(planned), tiers_(std::move(tiers)) {}

  const OpenTiers& tiers() const { return tiers_; }

  /// Inputs change from step to step; `all`: what outlives steps, too.
  void fill(std::uint64_t step, bool all) {
    for (const Alloc& region : planned_.plan->start) {
      const bool persistent = planned_.graph[region.tensor].persistent;
      if (!persistent || all)
        tiers_.write(given(planned_.graph, region.tensor.index, persistent ? 0 : step),
                     {region.tier, region.offset});
    }
  }
  Kept kept() const {
    Residence residence(planned_.graph, planned_.machine, planned_.plan.plan());
    for (const Instruction& instruction : planned_.plan->instructions) residence.apply(instruction);
    Kept kept;
    const auto keep = [&](TensorId tensor) {
      for (const TierAddress& address : residence.addresses(tensor)) {
        auto& bytes = kept[{tensor.index, address.tier.index}];
        bytes.resize(planned_.graph[tensor].bytes.count);
        tiers_.read(address, bytes);
      }
    };
    for (std::uint32_t i = 0; i < planned_.graph.tensors.size(); ++i) {
      if (planned_.graph.tensors[i].persistent) keep({i});
    }
    for (const TensorId result : planned_.graph.results) keep(result);
    return kept;
  }

 private:
  const Planned& planned_;
  OpenTiers tiers_;
};

/// The same plan on the host, instruction by instruction.
inline std::vector<Kept> run_synchronously(const Planned& planned, std::uint64_t steps) {
  const std::string user = "a test";
  auto opened = OpenTiers::open({user, planned.machine, planned.plan->budget, [](const TierSpec& spec) {
                                   if (!spec.on_device && spec.kind != TierKind::pinned)
                                     return open_tier(spec);
                                   TierSpec memory;
                                   memory.capacity = spec.capacity;
                                   return open_tier(memory);
                                 }});
  PlannedTiers tiers(planned, std::move(opened).value());
  const auto backend = mixing_backend("random");
  const Kernels kernels = backend->instantiate(planned.graph);
  Runner runner(resolve(planned.graph, planned.machine, planned.plan.plan(), tiers.tiers()),
                planned.plan->instructions.size(), tiers.tiers(), kernels);
  std::vector<Kept> all;
  for (std::uint64_t step = 0; step < steps; ++step) {
    tiers.fill(step, step == 0);
    runner.step({7, step, 0});
    all.push_back(tiers.kept());
  }
  return all;
}

/// Without any plan: kernels in the graph's order, each tensor in memory of its own.
inline Kept run_plainly(const Graph& graph) {
  std::vector<std::vector<std::byte>> tensors;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) tensors.push_back(given(graph, i, 0));
  for (const Kernel& kernel : graph.kernels) {
    std::vector<std::span<std::byte>> inputs, outputs;
    for (const Operand& input : kernel.inputs) inputs.emplace_back(tensors[input.tensor.index]);
    for (const Operand& output : kernel.outputs) outputs.emplace_back(tensors[output.tensor.index]);
    mix_on_host(inputs, outputs, salt_of(kernel, 7, 0));
  }
  Kept kept;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) kept[{i, 0}] = tensors[i];
  return kept;
}

/// The plan on a device: fake tiers on that one, or the GPU's where there is none.
class OnDevice {
 public:
  OnDevice(const Planned& planned, std::shared_ptr<FakeDevice> fake,
           QueueMarks marks = QueueMarks::where_waited)
      : fake_device(fake),
        tiers(planned, open(planned, std::move(fake))),
        kernels_(synthetic_kernels(*tiers.tiers().device()).value()),
        backend_(mixing_device_backend("random", *kernels_)),
        instantiated_(backend_->instantiate(planned.graph)),
        host_kernels_(host_backend_->instantiate(planned.graph)),
        runner({planned.graph, planned.machine, planned.plan, tiers.tiers(), by_engine(planned.machine)},
               marks) {}

  Kept step(std::uint64_t step, bool all) {
    tiers.fill(step, all);
    runner.step({7, step, 0});
    return tiers.kept();
  }
  std::vector<std::string> violations() const {
    return fake_device ? fake_device->violations() : std::vector<std::string>{};
  }

  std::shared_ptr<FakeDevice> fake_device;
  FakeTier* disk = nullptr;  ///< the last one, if there is any
  PlannedTiers tiers;

 private:
  OpenTiers open(const Planned& planned, const std::shared_ptr<FakeDevice>& fake) {
    const std::string user = "a test";
    const auto opener = [&](const TierSpec& spec) -> Result<std::unique_ptr<Tier>> {
      if (fake && spec.on_device) return open_fake_device_tier(spec, fake);
      if (fake && spec.kind == TierKind::pinned) return make_pinned_for(fake, spec.capacity);
      TierSpec other = spec;
      if (spec.on_device) {
        other = TierSpec{};
        other.kind = TierKind::cuda;
        other.capacity = spec.capacity;
      }
      auto opened = open_tier(other);
      if (opened && spec.kind == TierKind::fake && spec.blocks) disk = static_cast<FakeTier*>(opened->get());
      return opened;
    };
    return OpenTiers::open({user, planned.machine, planned.plan->budget, opener, KernelsOn::device}).value();
  }

  /// An engine that does not reach the device is the processor's.
  std::vector<const Kernels*> by_engine(const Machine& machine) const {
    std::vector<const Kernels*> kernels;
    for (std::uint32_t i = 0; i < machine.engine_count(); ++i)
      kernels.push_back(machine.reaches(EngineId{i}, TierId{0}) ? &instantiated_ : &host_kernels_);
    return kernels;
  }

  const std::unique_ptr<SyntheticKernels> kernels_;
  const std::shared_ptr<const Backend> backend_;
  const std::shared_ptr<const Backend> host_backend_ = mixing_backend("random");
  const Kernels instantiated_;
  const Kernels host_kernels_;

 public:
  QueueRunner runner;
};

}  // namespace terrace
