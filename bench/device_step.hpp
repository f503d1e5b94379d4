// SPDX-License-Identifier: Apache-2.0
// What a planned step costs on a device: the host's time to issue a step of thousands of empty kernels, and
// how long steps of random plans take against what the simulator predicts.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/synthetic/synthetic.hpp"
#include "exec/queue_runner.hpp"
#include "report.hpp"
#include "support/random_graph.hpp"
#include "support/random_plan.hpp"
#include "terrace/simulate.hpp"

namespace terrace::bench {

using TierOpener = std::function<Result<std::unique_ptr<Tier>>(const TierSpec&)>;

inline Machine two_tier_machine(const std::string& fast, const std::string& slow) {
  Machine machine;
  machine.name = "bench";
  machine.source = "bench";
  machine.compute = {"device", 1, 1e12};
  const auto add = [&](const char* name, const std::string& spec, bool addressable) {
    MachineTier tier;
    tier.name = name;
    tier.capacity = Bytes{1ULL << 40U};
    tier.addressable = addressable;
    tier.read = tier.write = {1e12};
    tier.granularity = Bytes{256};
    tier.spec = spec;
    machine.tiers.push_back(tier);
  };
  add("device", fast, true);
  add("pinned", slow, false);
  machine.links = {{{0}, {1}, {{Bytes{1 << 20}, {5e10}}}}, {{1}, {0}, {{Bytes{1 << 20}, {5e10}}}}};
  return machine;
}

/// A chain of kernels on 256 bytes each. Of each twenty, one writes a tensor that goes to pinned memory, and
/// comes back later.
struct ManySmallThings {
  static constexpr std::uint32_t kKernels = 3000, kGroup = 20;
  static constexpr std::uint64_t kSize = 256;

  static Graph graph() {
    Graph graph;
    graph.name = "many small things";
    graph.layers = {"all"};
    for (std::uint32_t i = 0; i <= kKernels; ++i) {
      Tensor tensor;
      tensor.name = fmt::format("t{}", i);
      tensor.shape = {static_cast<std::int64_t>(kSize)};
      tensor.type = DataType::u8;
      tensor.kind = i == 0 ? TensorKind::input : TensorKind::activation;
      tensor.bytes = Bytes{kSize};
      graph.tensors.push_back(tensor);
    }
    for (std::uint32_t i = 0; i < kKernels; ++i) {
      Kernel kernel;
      kernel.name = fmt::format("k{}", i);
      kernel.operation = "random";
      kernel.inputs = {{{i}, graph.tensors[i].shape, Bytes{kSize}, {}}};
      kernel.outputs = {{{i + 1}, graph.tensors[i].shape, Bytes{kSize}, {}}};
      graph.kernels.push_back(kernel);
    }
    graph.results = {{kKernels}};
    return graph;
  }

  static Plan plan(const Graph& graph, const Machine& machine) {
    Plan plan;
    plan.graph = fingerprint(graph);
    plan.machine = fingerprint(machine);
    plan.budget = {Bytes{64 * kSize}, Bytes{64 * kSize}};
    plan.start = {{{0}, {0}, 0}};
    auto& code = plan.instructions;
    std::uint32_t ticket = 0;
    const auto is_saved = [](std::uint32_t tensor) {
      return tensor % kGroup == 1 && tensor + 20 <= kKernels;
    };
    const auto place = [&](std::uint32_t tensor) {
      return (is_saved(tensor) ? 8U : 1U + tensor % 4) * kSize;
    };
    for (std::uint32_t k = 0; k < kKernels; ++k) {
      code.push_back(Alloc{{k + 1}, {0}, place(k + 1)});
      code.push_back(Run{{k}, 0, {{0}, {0}}});
      if (k > 0 && !is_saved(k)) code.push_back(Free{{k}, {0}});
      const std::uint32_t saved = k / kGroup * kGroup + 1;
      if (!is_saved(saved)) continue;
      switch (k % kGroup) {
        case 0:
          code.push_back(Alloc{{saved}, {1}, 0});
          code.push_back(Copy{{{saved}}, {0}, {1}, ticket});
          break;
        case 8:
          code.push_back(Wait{ticket++});
          code.push_back(Free{{saved}, {0}});
          code.push_back(Alloc{{saved}, {0}, 9 * kSize});
          code.push_back(Copy{{{saved}}, {1}, {0}, ticket});
          break;
        case 18:
          code.push_back(Wait{ticket++});
          code.push_back(Free{{saved}, {0}});
          code.push_back(Free{{saved}, {1}});
          break;
        default:
          break;
      }
    }
    return plan;
  }
};

/// The host's time to issue one instruction (kernels, copies and waits), in microseconds.
inline nlohmann::json measure_issuing(const std::string& name, const TierOpener& open, const Kernels& kernels,
                                      const Graph& graph, int rounds) {
  const Machine machine = two_tier_machine("fake:1MiB,device", "dram:1MiB");
  const VerifiedPlan plan = verify(graph, machine, ManySmallThings::plan(graph, machine)).value();
  const OpenTiers tiers = OpenTiers::open({name, machine, plan->budget, open, KernelsOn::device}).value();
  nlohmann::json result{{"device", name}};
  std::size_t issued = 0, copies = 0;
  for (const Instruction& one : plan->instructions) {
    copies += std::holds_alternative<Copy>(one);
    issued += !std::holds_alternative<Alloc>(one) && !std::holds_alternative<Free>(one);
  }
  for (const auto& [what, marks] : {std::pair{"us_an_instruction", QueueMarks::where_waited},
                                    {"us_with_a_mark_each", QueueMarks::everywhere}}) {
    QueueRunner runner({graph, machine, plan, tiers, {&kernels}}, marks);
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      runner.step({1, static_cast<std::uint64_t>(i), 0});
      if (i > 0) times.push_back(runner.times().issue.count() * 1e6 / static_cast<double>(issued));
    }
    result[what] = median(times);
    result["spread"] = spread(times);
  }
  result["kernels"] = graph.kernels.size();
  result["copies"] = copies;
  result["instructions"] = issued;
  print_line(
      fmt::format("issuing {} kernels and {} copies on {}: {:.2f} us an instruction, {:.2f} with a mark each",
                  graph.kernels.size(), copies, name, result["us_an_instruction"].get<double>(),
                  result["us_with_a_mark_each"].get<double>()));
  return result;
}

/// Random plans of kernels that take a known time, predicted with a machine that was measured.
class PredictedSteps {
 public:
  PredictedSteps(const Machine& machine, TierOpener open, SyntheticKernels& kernels, Bytes largest)
      : machine_(machine), open_(std::move(open)), kernels_(kernels), largest_(largest) {}

  nlohmann::json run(std::uint64_t plans) {
    std::vector<double> errors;
    bool peaks = true;
    for (std::uint64_t seed = 0; seed < plans; ++seed) errors.push_back(one(seed, peaks));
    print_line(fmt::format(
        "predicted against executed over {} plans: {:.1f}% off in the median, {:.1f}% at most; peaks {}",
        plans, 100 * median(errors), 100 * quantile(errors, 1), peaks ? "exact" : "differ"));
    return {{"plans", plans},
            {"median_error", median(errors)},
            {"worst_error", quantile(errors, 1)},
            {"peaks_exact", peaks}};
  }

 private:
  static Seconds time_of(const Kernel& kernel) { return Seconds{2e-4 + kernel.flops * 2e-6}; }

  double one(std::uint64_t seed, bool& peaks) {
    RandomGraphOptions options;
    options.kernels = 30;
    options.least = largest_ / 64;
    options.most = largest_;
    const Graph graph = random_graph(options, seed);
    Plan made = random_plan(graph, machine_, random_budget(graph, machine_, seed), seed);
    made.machine = fingerprint(machine_);
    const VerifiedPlan plan = verify(graph, machine_, std::move(made)).value();
    const std::string user = "a random plan";
    const OpenTiers tiers = OpenTiers::open({user, machine_, plan->budget, open_, KernelsOn::device}).value();
    const auto backend = foreign_device_backend({{"random", [&](const ForeignLaunch& launch) {
                                                    kernels_.spin(launch.queue, time_of(launch.kernel));
                                                  }}});
    const Kernels instantiated = backend->instantiate(graph);
    QueueRunner runner({graph, machine_, plan, tiers, {&instantiated}});
    std::vector<double> steps;
    for (int i = 0; i < 6; ++i) {
      runner.step({});
      if (i > 0) steps.push_back(runner.times().step.count());
    }
    const Timeline predicted = simulate(graph, machine_, profile_of(graph), plan.plan());
    peaks = peaks && predicted.peak == runner.script().peak;
    return std::abs(predicted.step.count() / median(steps) - 1);
  }

  Profile profile_of(const Graph& graph) const {
    Profile profile{fingerprint(graph), fingerprint(machine_), {}};
    for (const Kernel& kernel : graph.kernels) {
      const std::size_t operands = kernel.inputs.size() + kernel.outputs.size() + (kernel.workspace ? 1 : 0);
      PlacedTime placed{std::vector<TierId>(operands, TierId{0}), time_of(kernel), time_of(kernel),
                        Seconds{0}, 1};
      profile.kernels.push_back({{{placed}}});
    }
    return profile;
  }

  const Machine& machine_;
  const TierOpener open_;
  SyntheticKernels& kernels_;
  const Bytes largest_;
};

}  // namespace terrace::bench
