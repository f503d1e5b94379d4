// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/compare.hpp"
#include "cli/deadline.hpp"

namespace terrace::cli {
namespace {

/// What a record's graph is planned with, here or on another machine.
struct Recorded {
  Record record;
  Workload workload;
  Profile profile;
  bool moved = false;
};

Recorded recorded(const CompareRequest& request, Record record, ProgressLine& line) {
  Recorded made{std::move(record), {}, {}, false};
  made.workload = workload_of(made.record);
  made.profile = made.record.profile;
  if (!request.machine_given) return made;
  Machine machine = other_machine(made.record, request, line);
  if (fingerprint(machine) == fingerprint(made.record.machine)) return made;
  made.workload.machine = std::move(machine);
  made.profile = estimate(made.workload.graph(), made.workload.machine);
  made.moved = true;
  return made;
}

/// Without --fast, what the record was planned for; of another machine's slower tiers, all there is.
std::vector<std::vector<Bytes>> budgets_of(const CompareRequest& request, const Recorded& on) {
  std::vector<std::vector<Bytes>> budgets;
  for (const std::string& fast : request.fast) budgets.push_back(expect(budget_of(on.workload, fast)));
  if (!budgets.empty()) return budgets;
  if (!on.moved) return {on.record.budget};
  auto budget = expect(budget_of(on.workload, {}));
  budget[0] = std::min(budget[0], on.record.budget[0]);
  return {budget};
}

/// The plan as it stands in the record.
PlanRow recorded_row(const Recorded& on) {
  const Plan& plan = *on.record.plan;
  PlanRow row = refused_row(on.workload, on.record.budget[0], plan.planner + " (recorded)", {});
  const KernelClock clock(on.workload.graph(), on.workload.machine, on.profile);
  row.fast_only = clock.fast_step();
  row.slow_only = slow_only(on.workload, on.profile);
  auto verified = verify(on.workload.graph(), on.workload.machine, plan);
  if (verified) {
    row.planned = Planned{*std::move(verified), on.record.budget[0],
                          least_budget(on.workload.graph(), on.workload.machine), Seconds{0}};
  } else {
    row.reason = verified.error().message;
  }
  return row;
}

std::vector<PlanRow> rows_of(const CompareRequest& request, const Recorded& on, ProgressLine& line) {
  std::vector<PlanRow> rows;
  if (on.record.plan && !on.moved && request.fast.empty()) rows.push_back(recorded_row(on));
  for (const auto& budget : budgets_of(request, on)) {
    for (const std::string& planner : planners_of(request)) {
      line.show(fmt::format("{} of fast memory: planning with {}", readable(budget[0]), planner));
      const Deadline deadline(request.planner_seconds);
      rows.push_back(plan_row(on.workload, on.profile, budget, planner, deadline.token()));
    }
  }
  return rows;
}

}  // namespace

std::vector<std::string> planners_of(const CompareRequest& request) {
  if (!request.planners.empty()) return request.planners;
  std::vector<std::string> names;
  for (const PlannerInfo& info : planners()) names.emplace_back(info.name);
  return names;
}

ComparedRecord compare_with(const CompareRequest& request, Record record, ProgressLine& line) {
  Recorded on = recorded(request, std::move(record), line);
  std::vector<PlanRow> rows = rows_of(request, on, line);
  return {std::move(on.workload), std::move(rows)};
}

}  // namespace terrace::cli
