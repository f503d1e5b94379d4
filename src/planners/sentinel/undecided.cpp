// SPDX-License-Identifier: Apache-2.0
#include "planners/sentinel/undecided.hpp"

#include <fmt/format.h>

#include "base/fingerprint.hpp"
#include "migration/variant_choice.hpp"
#include "planners/sentinel/sentinel.hpp"
#include "planners/table.hpp"

namespace terrace::sentinel {

std::optional<Undecided> find_undecided(std::string_view planner, const PlanRequest& request) {
  const auto choice = choose_planner(planner);
  if (!choice || choice->options.count("end") != 0) return std::nullopt;
  const bool published = choice->planner->plan == plan_sentinel;
  if (!published && choice->planner->plan != plan_sentinel_plus) return std::nullopt;
  // Kernels have the variants they are planned with, so that intervals have the numbers they have in plans.
  PlanRequest asked = request;
  asked.options = choice->options;
  if (published) asked.options = as_published(asked).options;
  const VariantChoice variants(asked);
  PlanRequest waiting = variants.request();
  waiting.options["end"] = "wait";
  const auto found = examine(waiting);
  if (!found) return std::nullopt;
  Undecided open{found->waited, std::string(choice->planner->name), {}};
  for (const auto& [name, value] : choice->options) open.planner += fmt::format("+{}={}", name, value);
  Fingerprint cuts;
  for (const std::uint32_t cut : found->cuts) cuts.add(cut);
  open.intervals = fmt::format("{} intervals {}", found->cases.size(), cuts.text());
  return open;
}

Result<Plan> plan_with_end(std::string_view planner, std::string_view end, const PlanRequest& request) {
  return make_plan(fmt::format("{}+end={}", planner, end), request);
}

}  // namespace terrace::sentinel
