// SPDX-License-Identifier: Apache-2.0
#include "terrace/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <set>

#include "base/stop_after.hpp"
#include "pipeline/measuring.hpp"
#include "plan/reach.hpp"
#include "planners/table.hpp"
#include "profile/kernel_key.hpp"
#include "profile/roofline.hpp"
#include "record/outside_planner.hpp"

namespace terrace {
namespace {

/// Opens the store in the cache folder, where there is one.
std::optional<ProfileStore> open_store(const ProgressSink& progress) {
  const auto file = profile_store_file();
  if (!file) return progress(file.error().message), std::nullopt;
  return open_profile_store(*file, progress);
}

/// Returns what a user asks for with `seconds=`, as in `autotm-sync+seconds=5`. Planners read no clock, so
/// the time is kept here; a value that is no number is for the planner to refuse.
std::optional<Seconds> seconds_of(std::string_view planner) {
  const auto choice = choose_planner(planner);
  if (!choice) return std::nullopt;
  const auto found = choice->options.find("seconds");
  if (found == choice->options.end()) return std::nullopt;
  const std::string& text = found->second;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = error == std::errc{} && end == text.data() + text.size() && seconds >= 0;
  return is_number ? std::optional(Seconds{seconds}) : std::nullopt;
}

/// The name under which the store keeps what planners have learned of a graph on a machine.
constexpr std::string_view kAgentsKey = "learned agents";

/// Hands in the agents that were trained before for this graph and a machine of this name, as it was believed
/// to be then, and keeps the one that is trained now. Without a store, or with agents that cannot be read,
/// training begins anew.
Result<Plan> plan_with_agents(std::string_view planner, PlanRequest request) {
  auto store = open_store(request.progress);
  const std::string graph = fingerprint(request.graph), &machine = request.machine.name;
  LearnedAgents agents;
  if (const auto kept = store ? store->find_decision(graph, machine, kAgentsKey) : std::nullopt) {
    if (auto read = agents_from_json(*kept)) agents = *std::move(read);
  }
  request.agents = &agents;
  auto plan = make_plan(planner, request);
  if (plan && store) store->save_decision(graph, machine, kAgentsKey, to_json(agents));
  return plan;
}

}  // namespace

Result<void> require_least(const Workload& workload, Bytes fast) {
  const LeastBudget least = least_budget(workload.graph(), workload.machine);
  if (fast >= least.bytes) return {};
  const std::string user = least.kernel ? "kernel " + workload.graph()[least.kernel].name
                                        : std::string("what goes into a step and comes out of it");
  return Error{
      ErrorCode::too_large,
      fmt::format("{} of {} needs {} of fast memory at once and {} is given, {} are missing: give at "
                  "least {}, or take a smaller batch{}",
                  user, workload.graph().name, readable(least.bytes), readable(fast),
                  readable(least.bytes - fast), to_string(least.bytes),
                  workload.not_split.empty() ? "" : fmt::format(" ({})", workload.not_split))};
}

Result<std::filesystem::path> profile_store_file() {
  auto folder = cache_folder();
  if (!folder) return folder;
  return *folder / "profiles.sqlite";
}

Result<Profile> profile_of(const Workload& workload, const std::vector<Bytes>& budget,
                           const ProgressSink& progress) {
  if (auto enough = require_least(workload, budget[0]); !enough) return enough.error();
  if (!workload.here) return estimate(workload.graph(), workload.machine);
  auto store = open_store(progress);
  MeasureOptions options = measure_within(workload.machine, budget);
  options.threads = workload.program.threads;
  options.backend = workload.program.backend.get();
  options.store = store ? &*store : nullptr;
  options.progress = [&](const MeasureProgress& done) {
    progress(fmt::format("measuring kernels, {}/{}", done.done, done.all));
  };
  options.note = progress;
  return measure(workload.graph(), workload.machine, options);
}

void remember_accesses(const Program& program, const KernelAccesses& counted, const ProgressSink& progress) {
  auto store = open_store(progress);
  if (!store) return;
  const std::string compute = compute_key(*program.backend, program.threads);
  std::set<std::string> saved;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const std::string key = kernel_key(*program.backend, program.graph, program.graph.kernels[i]);
    if (saved.insert(key).second) store->save_accesses(key, compute, counted[i]);
  }
}

bool learns(std::string_view planner) {
  const auto choice = choose_planner(planner);
  return choice && choice->planner->name == "deeptm";
}

PlanFunction planner_named(std::string name, const std::stop_token& stop) {
  if (is_outside_planner(name)) {
    return [name = std::move(name), stop](const PlanRequest& request) {
      return make_outside_plan(name, request, stop);
    };
  }
  return [name = std::move(name), stop](const PlanRequest& request) {
    PlanRequest limited = request;
    limited.stop = stop;
    const auto make = [&] {
      return learns(name) ? plan_with_agents(name, limited) : make_plan(name, limited);
    };
    const auto seconds = seconds_of(name);
    if (!seconds) return make();
    StopAfter limit(*seconds);
    const std::stop_callback asked(stop, [&] { limit.stop(); });
    limited.stop = limit.token();
    return make();
  };
}

Result<Planned> plan_of(const Workload& workload, const Profile& profile, const std::vector<Bytes>& budget,
                        std::string_view planner) {
  return plan_of(workload, profile, budget, planner_named(std::string(planner)));
}

Result<Planned> plan_of(const Workload& workload, const Profile& profile, const std::vector<Bytes>& budget,
                        const PlanFunction& planner) {
  const auto start = std::chrono::steady_clock::now();
  auto plan = planner({workload.graph(), workload.machine, profile, budget});
  if (!plan) return plan.error();
  trim_budget(workload.graph(), workload.machine, *plan);
  auto verified = verify(workload.graph(), workload.machine, *std::move(plan));
  if (!verified) return verified.error();
  return Planned{*std::move(verified), budget[0], least_budget(workload.graph(), workload.machine),
                 std::chrono::steady_clock::now() - start};
}

std::optional<Seconds> slow_only(const Workload& workload, const Profile& profile) {
  const auto& tiers = workload.machine.tiers;
  std::uint32_t slowest = static_cast<std::uint32_t>(tiers.size()) - 1;
  while (slowest > 0 && !tiers[slowest].addressable) --slowest;
  if (slowest == 0) return std::nullopt;
  const KernelClock clock(workload.graph(), workload.machine, profile);
  Seconds sum{0};
  for (std::uint32_t i = 0; i < workload.graph().kernels.size(); ++i) {
    const std::vector<TierId> there(operand_count(workload.graph().kernels[i]), TierId{slowest});
    Seconds best = Seconds::max();
    for (std::uint32_t variant = 0; variant < profile.kernels[i].variants.size(); ++variant)
      best = std::min(best, clock.time({i}, variant, there));
    sum += best;
  }
  return sum;
}

}  // namespace terrace
