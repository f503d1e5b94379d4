#include "exec/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/system.hpp"
#include "base/system_storage.hpp"
#include "exec/fast_budget.hpp"
#include "graph/passes.hpp"
#include "profile/computer_name.hpp"
#include "profile/this_machine.hpp"
#include "terrace/lifetimes.hpp"

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

Result<Machine> measured_here(const WorkloadRequest& request) {
  auto slow = slow_tiers(request.slow);
  if (!slow) return slow.error();
  CalibrateOptions options;
  options.slow = *std::move(slow);
  options.threads = request.threads;
  options.progress = [&](std::string_view what, double share) {
    request.progress(fmt::format("calibrating this computer, {:.0f}%: {}", share * 100, what));
  };
  auto machine = this_machine(options);
  if (!machine) return machine;
  // Not what is free just now: a plan's machine is the same tomorrow. Whether there is room shows when the
  // tiers are opened.
  machine->tiers[0].capacity = round_down(probe_memory().total, machine->tiers[0].granularity);
  return machine;
}

bool is_preset(const std::string& name) {
  const auto presets = machine_presets();
  return std::any_of(presets.begin(), presets.end(),
                     [&](const MachineInfo& preset) { return preset.name == name; });
}

Result<Machine> find_machine(const WorkloadRequest& request) {
  if (request.machine == "this") return measured_here(request);
  if (!request.slow.empty()) {
    return invalid(
        fmt::format("the tiers of machine {} are its own: give slow tiers for `this` only", request.machine));
  }
  if (is_preset(request.machine)) return machine_preset(request.machine);
  // What cannot be a file's name is a preset's that is misspelt.
  const bool is_path =
      fs::path(request.machine).has_extension() || fs::path(request.machine).has_parent_path();
  if (!is_path && !fs::exists(request.machine)) return machine_preset(request.machine);
  return read_machine(request.machine);
}

/// A machine's file says which processor it was measured on, and how its tiers are opened.
bool is_this_computer(const Machine& machine, const std::string& name) {
  if (name == "this") return true;
  return machine.compute.name == computer_name().processor &&
         std::none_of(machine.tiers.begin(), machine.tiers.end(),
                      [](const MachineTier& tier) { return tier.spec.empty(); });
}

Program scheduled(const Graph& graph) {
  Program program;
  program.graph = share_in_place(schedule(graph));
  program.peak = Lifetimes(program.graph).peak_bytes();
  return program;
}

/// What can be had of a tier here and now.
Bytes available(const MachineTier& tier) {
  const auto spec = parse_tier_spec(tier.spec);
  if (!spec || spec->kind != TierKind::file) return tier.capacity;
  std::error_code unknown;
  const auto space = fs::space(fs::absolute(spec->path).parent_path(), unknown);
  return unknown ? tier.capacity : std::min(tier.capacity, round_down({space.available}, tier.granularity));
}

}  // namespace

Result<Workload> prepare(const WorkloadRequest& request) {
  auto machine = find_machine(request);
  if (!machine) return machine.error();
  Workload workload{{}, *std::move(machine), false};
  workload.here = is_this_computer(workload.machine, request.machine);
  request.progress(fmt::format("scheduling {} kernels", request.graph.kernels.size()));
  if (!workload.here) {
    workload.program = scheduled(request.graph);
    return workload;
  }
  auto program = compile(request.graph, request.threads);
  if (!program) return program.error();
  workload.program = *std::move(program);
  return workload;
}

Result<Workload> prepare_for(const Plan& plan, const WorkloadRequest& request) {
  auto machine = find_machine(request);
  if (!machine) return machine.error();
  Workload workload{{}, *std::move(machine), false};
  request.progress(fmt::format("scheduling {} kernels", request.graph.kernels.size()));
  workload.program = scheduled(request.graph);
  if (fingerprint(workload.graph()) == plan.graph) return workload;
  auto program = compile(request.graph, request.threads);
  if (!program) return program.error();
  workload.program = *std::move(program);
  workload.here = is_this_computer(workload.machine, request.machine);
  if (fingerprint(workload.graph()) == plan.graph) return workload;
  return invalid(
      fmt::format("the plan was made for another graph (fingerprint {}) than {} as it is asked for: give the "
                  "model, batch, optimizer and number of threads it was made with, or plan again",
                  plan.graph, request.graph.name));
}

Result<std::vector<Bytes>> budget_of(const Workload& workload, std::string_view fast) {
  std::vector<Bytes> budget;
  for (const MachineTier& tier : workload.machine.tiers)
    budget.push_back(workload.here ? available(tier) : tier.capacity);
  if (fast.empty()) return budget;
  const auto given = parse_fast_budget(fast, workload.program.peak);
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
