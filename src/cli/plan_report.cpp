// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/median.hpp"

namespace terrace::cli {

std::string split_text(std::size_t kernels, Bytes fast) {
  return fmt::format("{} {} split to fit in {}", kernels, kernels == 1 ? "kernel was" : "kernels were",
                     readable(fast));
}

double median_or_zero(const std::vector<double>& numbers) { return numbers.empty() ? 0 : median(numbers); }

std::string gap_text(double gap) { return fmt::format("{:.1f}%", std::abs(gap) < 5e-4 ? 0 : gap * 100); }

std::string moved_text(const Machine& machine, const std::vector<Traffic>& moved) {
  std::string text;
  for (const Traffic& traffic : moved) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", link_name(machine, traffic.from, traffic.to),
                        readable(traffic.bytes));
  }
  return text.empty() ? "nothing" : text;
}

std::string peak_text(const Machine& machine, const std::vector<Bytes>& peak) {
  std::string text;
  for (std::size_t i = 0; i < peak.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", machine.tiers[i].name, readable(peak[i]));
  return text;
}

nlohmann::json to_json(const ModelChoice& model, const Workload& workload, const PlanRow& row) {
  nlohmann::json json = terrace::to_json(workload, row);
  json.update({{"model", model.model}, {"batch", model.batch_json()}});
  return json;
}

}  // namespace terrace::cli
