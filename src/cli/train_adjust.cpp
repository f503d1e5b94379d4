#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/train.hpp"
#include "exec/workload.hpp"

namespace terrace::cli {

void adjust(TrainSetup& setup, TrainRecord& record, ProgressLine& line) {
  if (!setup.plan || !setup.plan->adjuster) return;
  PlannedRun& run = *setup.plan;
  auto better = run.adjuster->observe(setup.trainer->timeline());
  if (!better) return;
  line.show("changing the plan");
  expect(setup.trainer->change_plan(better->plan, run.adjuster->machine(), expect(cache_folder())));
  run.machine = run.adjuster->machine();
  run.planned.plan = std::move(better->plan);
  record.planned_again.push_back({record.steps_done(), better->drift, better->before, better->after});
}

}  // namespace terrace::cli
