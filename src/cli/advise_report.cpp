// SPDX-License-Identifier: Apache-2.0
#include "cli/advise_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/plan_report.hpp"
#include "cli/table.hpp"

namespace terrace::cli {
namespace {

using namespace literals;

bool is_priced(const AdviceReport& report) {
  return std::any_of(report.curve.begin(), report.curve.end(),
                     [&](const AdvicePoint& point) { return price_share(report, point).has_value(); });
}

std::vector<std::string> cells(const AdviceReport& report, const AdvicePoint& point) {
  std::vector<std::string> cells{decimal_text(point.fast),
                                 fmt::format("{:.0f}%", 100 * share(point.fast, report.peak)),
                                 fmt::format("{:.4f}", point.step.count()),
                                 fmt::format("{:.4f}", point.bound.count()), gap_text(point.slowdown)};
  if (is_priced(report)) {
    const auto of_all = price_share(report, point);
    cells.push_back(point.price ? fmt::format("{:.2f}", *point.price) : "-");
    cells.push_back(of_all ? fmt::format("{:.0f}%", 100 * *of_all) : "-");
    cells.push_back(of_all ? fmt::format("{:.2f}", report.fast_only / point.step / *of_all) : "-");
  }
  cells.push_back(point.frontier ? "*" : "");
  return cells;
}

void print_curve(const AdviceReport& report) {
  using Align = Table::Align;
  const std::string& fast = report.machine.tiers[0].name;
  std::vector<Table::Column> columns;
  for (const std::string& title :
       {fast, std::string("of peak"), std::string("step s"), std::string("bound s"), std::string("slower")})
    columns.push_back({title, Align::right});
  if (is_priced(report)) {
    columns.push_back({"price", Align::right});
    columns.push_back({"of all-" + fast, Align::right});
    columns.push_back({"speed/price", Align::right});
  }
  columns.push_back({"frontier"});
  Table table(std::move(columns));
  for (const AdvicePoint& point : report.curve) table.add(cells(report, point));
  table.print();
}

/// `1 GB more is worth at most 3.1 ms a step`; a network of megabytes is told about megabytes.
std::string memory_sentence(const AdviceReport& report) {
  if (!report.shadow.memory) return fmt::format("what more is worth is not known: {}", report.shadow.reason);
  const bool large = report.peak >= 1_GB;
  const double per_gigabyte = report.shadow.memory->seconds_per_gigabyte;
  return fmt::format("1 {} more is worth {}{} a step", large ? "GB" : "MB",
                     per_gigabyte > 0 ? "at most " : "",
                     worth_text(large ? per_gigabyte : per_gigabyte / 1000));
}

/// `; its memory costs 1034.20, 52% of all-dram's`
std::string price_sentence(const AdviceReport& report) {
  const auto of_all = price_share(report, report.answer);
  if (!of_all) return "";
  return fmt::format("; its memory costs {:.2f}, {:.0f}% of what {} alone would", *report.answer.price,
                     100 * *of_all, report.machine.tiers[0].name);
}

void print_answer(const AdviceReport& report) {
  fmt::print(
      "\n{} runs within {:.3g}% of full speed in {} of {}, {:.0f}% of what it asks for; "
      "{}{}\n",
      report.model.title(), 100 * report.slowdown, decimal_text(report.answer.fast),
      report.machine.tiers[0].name, 100 * share(report.answer.fast, report.peak), memory_sentence(report),
      price_sentence(report));
  for (const LinkWorth& link : report.shadow.links) {
    fmt::print("1 GB/s more from {} to {} is worth {} a step to this plan\n", report.machine[link.from].name,
               report.machine[link.to].name, worth_text(link.seconds_per_gigabyte_per_second));
  }
}

}  // namespace

std::string decimal_text(Bytes amount) {
  const auto in = [&](double unit) { return static_cast<double>(amount.count) / unit; };
  if (amount >= 1_GB) return fmt::format("{:.1f} GB", in(1e9));
  if (amount >= 1_MB) return fmt::format("{:.1f} MB", in(1e6));
  return fmt::format("{:.1f} KB", in(1e3));
}

std::string worth_text(double seconds) {
  constexpr double kNothing = 5e-10;
  if (std::abs(seconds) < kNothing) return "nothing";
  if (std::abs(seconds) >= 1) return fmt::format("{:.3g} s", seconds);
  if (std::abs(seconds) >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

void print(const AdviceReport& report) {
  fmt::print("{} on {}, by {}: a peak of {}, and {:.4f} s a step with everything in {}\n\n",
             report.model.title(), report.machine.name, report.planner, decimal_text(report.peak),
             report.fast_only.count(), report.machine.tiers[0].name);
  print_curve(report);
  print_answer(report);
}

nlohmann::json to_json(const AdviceReport& report) {
  nlohmann::json json = terrace::to_json(static_cast<const Advice&>(report));
  json.update({{"model", report.model.model}, {"batch", report.model.batch_json()}});
  return json;
}

}  // namespace terrace::cli
