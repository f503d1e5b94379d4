// SPDX-License-Identifier: Apache-2.0
#include "terrace/workload.hpp"
#include "terrace/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "backends/processor.hpp"
#include "base/system.hpp"
#include "base/system_storage.hpp"
#include "graph/passes.hpp"
#include "nn/split.hpp"
#include "pipeline/fast_budget.hpp"
#include "profile/computer_name.hpp"
#include "profile/this_machine.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/machine_file.hpp"
#include "terrace/planner.hpp"

namespace terrace {
namespace {

namespace fs = std::filesystem;

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Result<std::vector<TierSpec>> slow_tiers(const std::vector<std::string>& texts) {
  std::vector<TierSpec> specs;
  for (const std::string& text : texts) {
    auto spec = parse_tier_spec(text);
    if (!spec) return spec.error();
    specs.push_back(*std::move(spec));
  }
  if (!specs.empty()) return specs;
  auto spec = default_slow_tier();
  if (!spec) return spec.error();
  return std::vector{*std::move(spec)};
}

/// Keeps the machine for the runs to come.
Result<Machine> measured_now(const CalibrateOptions& options) {
  auto machine = calibrate(options);
  if (!machine) return machine;
  const auto folder = machine_cache_folder();
  if (!folder) return folder.error();
  if (const auto kept = keep_machine(*machine, machine_cache_file(*folder, options)); !kept)
    return kept.error();
  return machine;
}

Result<Machine> measured_here(const WorkloadRequest& request) {
  auto slow = slow_tiers(request.slow);
  if (!slow) return slow.error();
  CalibrateOptions options;
  options.slow = *std::move(slow);
  options.threads = request.threads;
  options.progress = [&](std::string_view what, double share) {
    request.progress(fmt::format("calibrating this computer, {:.0f}%: {}", share * 100, what));
  };
  auto machine = request.measure_again ? measured_now(options) : this_machine(options);
  if (!machine) return machine;
  // The capacity is that of the computer, not what is free just now, so that a plan's machine is the same
  // tomorrow. Whether there is room shows when the tiers are opened.
  machine->tiers[0].capacity = round_down(probe_memory().total, machine->tiers[0].granularity);
  return machine;
}

/// The tier that a machine's name stands for where it is the memory of a device: `cuda:0:80GiB`.
std::optional<TierSpec> device_memory(const std::string& name) {
  auto spec = parse_tier_spec(name);
  if (!spec || !lies_on_device(*spec)) return std::nullopt;
  return *std::move(spec);
}

Result<Machine> measured_device(const TierSpec& fast, const WorkloadRequest& request) {
  auto slow = slow_tiers(request.slow);
  if (!slow) return slow.error();
  const auto folder = machine_cache_folder();
  if (!folder) return folder.error();
  DeviceCalibrateOptions options;
  options.fast = fast;
  options.slow = *std::move(slow);
  options.progress = [&](std::string_view what, double share) {
    request.progress(fmt::format("calibrating {}, {:.0f}%: {}", request.machine, share * 100, what));
  };
  return this_device(options, *folder);
}

bool is_preset(const std::string& name) {
  const auto presets = machine_presets();
  return std::any_of(presets.begin(), presets.end(),
                     [&](const MachineInfo& preset) { return preset.name == name; });
}

/// A machine's file says which processor it was measured on, or `this` where it was declared for whichever
/// computer reads it, and how its tiers are opened.
bool is_this_computer(const Machine& machine, const std::string& name) {
  if (name == "this") return true;
  return (machine.compute.name == "this" || machine.compute.name == computer_name().processor) &&
         std::none_of(machine.tiers.begin(), machine.tiers.end(),
                      [](const MachineTier& tier) { return tier.spec.empty(); });
}

Program scheduled(const Graph& graph) {
  Program program;
  program.graph = share_in_place(schedule(graph));
  program.peak = Lifetimes(program.graph).peak_bytes();
  return program;
}

Result<Program> made_ready(const Graph& graph, const WorkloadRequest& request, bool here) {
  request.progress(fmt::format("scheduling {} kernels", graph.kernels.size()));
  if (here && request.backend) return compile(graph, request.backend, request.threads);
  if (here) return compile(graph, request.threads);
  return scheduled(graph);
}

/// Returns how much of a tier can be had here and now.
Bytes available(const MachineTier& tier) {
  const auto spec = parse_tier_spec(tier.spec);
  if (!spec || spec->kind != TierKind::file) return tier.capacity;
  std::error_code unknown;
  const auto space = fs::space(fs::absolute(spec->path).parent_path(), unknown);
  return unknown ? tier.capacity : std::min(tier.capacity, round_down({space.available}, tier.granularity));
}

}  // namespace

Result<Machine> machine_of(const WorkloadRequest& request) {
  if (request.machine == "this") return measured_here(request);
  if (const auto fast = device_memory(request.machine)) return measured_device(*fast, request);
  if (!request.slow.empty()) {
    return invalid(
        fmt::format("the tiers of machine {} are its own: give slow tiers for `this` only", request.machine));
  }
  if (is_preset(request.machine)) return machine_preset(request.machine);
  // A name that does not look like a file's is taken for a misspelt preset.
  const bool is_path =
      fs::path(request.machine).has_extension() || fs::path(request.machine).has_parent_path();
  if (!is_path && !fs::exists(request.machine)) return machine_preset(request.machine);
  return read_machine(request.machine);
}

Result<Workload> prepare(const WorkloadRequest& request) {
  auto machine = machine_of(request);
  if (!machine) return machine.error();
  return prepare(request, *std::move(machine));
}

Result<Workload> prepare(const WorkloadRequest& request, Machine machine) {
  if (const auto known = check_operations(request.graph); !known && !request.backend) return known.error();
  // Without kernels for this processor its graphs can still be planned, from estimates.
  const bool here = is_this_computer(machine, request.machine) && (request.backend || processor_backend());
  auto program = made_ready(request.graph, request, here);
  if (!program) return program.error();
  const Bytes peak = program->peak;
  return Workload{*std::move(program), std::move(machine), here, peak};
}

Result<Workload> fit(const WorkloadRequest& request, Workload workload, Bytes fast) {
  // Compiled kernels take scratch memory and padding beside what the graph says. Where they need too much,
  // the graph is split again for a smaller aim.
  constexpr std::array<std::uint64_t, 6> kPercent{100, 85, 70, 55, 40, 25};
  Bytes least = least_budget(workload.graph(), workload.machine).bytes;
  if (request.backend) return workload;
  for (const std::uint64_t percent : kPercent) {
    if (fast >= least) break;
    Split split = split_to_fit(request.graph, fast / 100 * percent);
    if (workload.not_split.empty()) workload.not_split = split.obstacle;
    if (split.kernels == 0) continue;
    auto program = made_ready(split.graph, request, workload.here);
    if (!program) return program.error();
    const Bytes its = least_budget(program->graph, workload.machine).bytes;
    if (its >= least) continue;
    least = its;
    workload.program = *std::move(program);
    workload.split_kernels = split.kernels;
    workload.not_split = std::move(split.obstacle);
  }
  if (fast >= least) workload.not_split.clear();
  return workload;
}

Result<Workload> prepare_for(const Plan& plan, const WorkloadRequest& request, std::string_view fast) {
  auto machine = machine_of(request);
  if (!machine) return machine.error();
  const bool may_be_here = is_this_computer(*machine, request.machine);
  for (const bool here : {false, true}) {
    if (here && !request.backend && !processor_backend()) break;
    auto program = made_ready(request.graph, request, here);
    if (!program) return program.error();
    const Bytes peak = program->peak;
    Workload workload{*std::move(program), *machine, here && may_be_here, peak};
    if (fingerprint(workload.graph()) == plan.graph) return workload;
    if (fast.empty() || here != may_be_here) continue;
    const auto budget = budget_of(workload, fast);
    if (!budget) return budget.error();
    auto split = fit(request, std::move(workload), budget->front());
    if (!split) return split.error();
    if (fingerprint(split->graph()) == plan.graph) return split;
  }
  return invalid(fmt::format(
      "the plan was made for another graph (fingerprint {}) than {} as it is asked for: give the "
      "model, batch, optimizer and number of threads it was made with, and --fast where its kernels "
      "were split to fit, or plan again",
      plan.graph, request.graph.name));
}

Result<std::vector<Bytes>> budget_of(const Workload& workload, std::string_view fast) {
  std::vector<Bytes> budget;
  for (const MachineTier& tier : workload.machine.tiers)
    budget.push_back(workload.here ? available(tier) : tier.capacity);
  if (fast.empty()) return budget;
  const auto given = parse_fast_budget(fast, workload.peak);
  if (!given) return given.error();
  const MachineTier& tier = workload.machine.tiers[0];
  if (*given > tier.capacity) {
    return Error{ErrorCode::too_large,
                 fmt::format("{} is {}, more than the {} of {} on machine {}: give less", fast,
                             readable(*given), readable(tier.capacity), tier.name, workload.machine.name)};
  }
  budget[0] = *given;
  return budget;
}

Result<fs::path> cache_folder() {
  const auto machines = machine_cache_folder();
  if (!machines) return machines.error();
  const fs::path folder = machines->parent_path();
  std::error_code refused;
  fs::create_directories(folder, refused);
  if (!refused) return folder;
  return invalid(
      fmt::format("cannot make the folder {} ({}): set XDG_CACHE_HOME to one that can be written to",
                  folder.native(), refused.message()));
}

Result<TierSpec> default_slow_tier() {
  const auto folder = cache_folder();
  if (!folder) return folder.error();
  const auto storage = probe_storage(*folder);
  if (!storage) return storage.error();
  TierSpec spec;
  spec.kind = TierKind::file;
  spec.path = *folder / "spill";
  spec.capacity = {fs::space(*folder).capacity};
  spec.buffered = storage->direct_error != 0;
  return spec;
}

}  // namespace terrace
