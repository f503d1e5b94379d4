// SPDX-License-Identifier: Apache-2.0
// The figures and tables of 000 and 002 chapter 4 that are simulated: each function prints a table and
// returns its rows.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "planners/sentinel/sentinel.hpp"
#include "planners/sentinel/trial.hpp"
#include "report.hpp"
#include "sentinel_cases.hpp"

namespace terrace::bench {

using nlohmann::json;

const char* const kNuma = "numa-sentinel";
const char* const kOptane = "optane-sentinel";
constexpr double kUsualShare = 0.2;

inline json number(std::optional<double> value) { return value ? json(*value) : json(nullptr); }
inline std::string percent(std::optional<double> value) {
  return value ? fmt::format("{:.1f}%", 100 * *value) : "no plan";
}
inline std::string percent_of(const json& value) {
  return percent(value.is_null() ? std::optional<double>{} : value.get<double>());
}
inline std::string megabytes(Bytes size) {
  return fmt::format("{:.0f}", static_cast<double>(size.count) / 1e6);
}

/// Checks that no plan is faster than its bound, which would show an error in either.
inline std::optional<double> within(double bound, std::optional<double> speed) {
  constexpr double kRounding = 1e-9;
  if (speed && *speed > bound * (1 + kRounding)) throw std::runtime_error("a plan is faster than its bound");
  return speed;
}

/// AutoTM's program with a fixed count of work: 002 compares with it in Fig. 4.7 and 4.8.
const char* const kAutoTmSync = "autotm-sync+iterations=500";

/// Returns every contender's share of the speed with everything in fast memory.
inline json speeds(const PaperCase& one, const std::string& machine, double asked) {
  const Simulated on(one.build(one.batch), machine);
  // Fast memory is at most what the machine has.
  const double share = std::min(asked, on.share_of(on.machine().tiers[0].capacity));
  json row{{"model", one.name},
           {"batch", one.batch},
           {"machine", machine},
           {"share", share},
           {"peak_bytes", on.peak().count},
           {"paper_peak_gb", one.peak_gb},
           {"fast_only_seconds", on.fast_only().count()}};
  const double bound = on.bound_speed(share);
  row["speed"]["bound"] = bound;
  row["speed"]["memory-mode"] = number(on.memory_mode_speed(share));
  for (const char* planner :
       {"sentinel", "sentinel+", kAutoTmSync, "prefetch", "active-list", "first-touch", "all-slow"})
    row["speed"][planner] = number(within(bound, on.speed(planner, share)));
  const json& speed = row["speed"];
  std::string line = fmt::format("| {} {} | {:.2f} ({}) | {:.0f}% |", one.name, one.batch,
                                 static_cast<double>(on.peak().count) / 1e9, one.peak_gb, 100 * share);
  for (const char* who : {"bound", "sentinel", "sentinel+", kAutoTmSync, "prefetch", "active-list",
                          "first-touch", "memory-mode", "all-slow"})
    line += " " + percent_of(speed[who]) + " |";
  print_line(line);
  return row;
}

const char* const kSpeedColumns =
    "| model, batch | peak GB (paper's) | fast | bound | sentinel | sentinel+ | autotm-sync | prefetch | "
    "active-list | first-touch | memory mode | all-slow |";

/// 000 Fig. 10 and 002 Fig. 4.7.
inline json figure10(bool quick) {
  json rows = json::array();
  print_head("Share of fast-only speed at 20%, numa-sentinel", kSpeedColumns);
  for (const PaperCase& one : cases_of_000()) {
    if (!quick || one.name == "resnet32") rows.push_back(speeds(one, kNuma, kUsualShare));
  }
  print_head("Share of fast-only speed at 20%, optane-sentinel", kSpeedColumns);
  for (const PaperCase& one : cases_of_002()) rows.push_back(speeds(one, kOptane, kUsualShare));
  return rows;
}

/// 002 Fig. 4.8. Our peaks differ from the paper's, so fast memory is the same share of them.
inline json large(bool quick) {
  constexpr double kDramGb = 96;
  json rows = json::array();
  print_head("Large batches, optane-sentinel, DRAM as large a share of the peak as in 002", kSpeedColumns);
  for (const PaperCase& one : large_cases_of_002()) {
    if (quick && one.name != "lstm") continue;
    rows.push_back(speeds(one, kOptane, std::min(1.1, kDramGb / one.peak_gb)));
  }
  return rows;
}

/// The papers' algorithm: only tensors whose copy is late are used in slow memory, and intervals have equal
/// lengths.
const char* const kAsPublished = "sentinel";

/// What Fig. 11 of 000 leaves out, one by one.
const char* const kAblations[] = {"+reserve=off", "+grouping=off", "+end=wait", "+end=leave"};

/// 000 Fig. 11, for the extended planner and for the papers' algorithm. Where convolutions have their
/// workspaces, short-lived tensors are much of the peak.
inline json figure11(bool quick, GraphOf what) {
  json rows = json::array();
  const auto ablate = [&](const PaperCase& one, const std::string& machine, const std::string& full) {
    // Compiling takes the sizes of its operands for real: bert-large's are too large for that.
    if (what == GraphOf::kernels && one.name.starts_with("bert")) return;
    const Simulated on(one.build(one.batch), machine, what);
    const auto base = on.speed(full, kUsualShare);
    json row{{"model", one.name}, {"batch", one.batch}, {"machine", machine}, {"full", full}};
    row["speed"] = number(base);
    std::string line =
        fmt::format("| {} {} | {} | {} | {} |", one.name, one.batch, machine, full, percent(base));
    for (const char* option : kAblations) {
      const auto without = on.speed(full + option, kUsualShare);
      std::optional<double> loss;
      if (base && without) loss = 1 - *without / *base;
      row["loss"][option] = number(loss);
      line += " " + percent(loss) + " |";
    }
    print_line(line);
    rows.push_back(row);
  };
  print_head(what == GraphOf::kernels ? "What is lost without a technique, at 20%, kernels with workspaces"
                                      : "What is lost without a technique, at 20%",
             "| model, batch | machine | with all | speed | no reserve | no grouping | always wait | always "
             "leave |");
  for (const std::string full : {"sentinel+", kAsPublished}) {
    for (const PaperCase& one : cases_of_000()) {
      if (!quick || one.name == "resnet32") ablate(one, kNuma, full);
    }
    for (const PaperCase& one : cases_of_002()) {
      if (!quick) ablate(one, kOptane, full);
    }
  }
  return rows;
}

/// What the layout of 002 section 4.4.2 and 4.4.3 changes: groups of every size, and a reserve in one piece.
inline json layout(bool quick) {
  constexpr const char* kLayouts[] = {"+grouping=small+reserve=on", "+grouping=published+reserve=on",
                                      "+grouping=small+reserve=contiguous",
                                      "+grouping=published+reserve=contiguous"};
  json rows = json::array();
  print_head("Share of fast-only speed at 20% by the layout of fast memory, and copies in a step",
             "| model, batch | machine | graph | small groups, reserve anywhere | groups of every size | "
             "reserve in one piece | both |");
  const auto compare = [&](const PaperCase& one, const std::string& machine, GraphOf what) {
    if (what == GraphOf::kernels && one.name.starts_with("bert")) return;  // as in figure11
    const Simulated on(one.build(one.batch), machine, what);
    json row{{"model", one.name}, {"batch", one.batch}, {"machine", machine}};
    row["graph"] = what == GraphOf::kernels ? "kernels" : "operations";
    std::string line =
        fmt::format("| {} {} | {} | {} |", one.name, one.batch, machine, row["graph"].get<std::string>());
    for (const char* option : kLayouts) {
      const auto plan = on.plan(kAsPublished + std::string(option), kUsualShare);
      std::optional<double> speed;
      std::size_t copies = 0;
      if (plan) {
        speed = on.fast_only() / plan->prediction.step;
        for (const Instruction& instruction : plan->instructions)
          copies += std::holds_alternative<Copy>(instruction) ? 1 : 0;
      }
      row["layouts"][option] = {{"speed", number(speed)}, {"copies", copies}};
      line += fmt::format(" {}, {} |", percent(speed), copies);
    }
    print_line(line);
    rows.push_back(std::move(row));
  };
  for (const GraphOf what : {GraphOf::operations, GraphOf::kernels}) {
    for (const PaperCase& one : cases_of_000())
      if (!quick || one.name == "resnet32") compare(one, kNuma, what);
    for (const PaperCase& one : cases_of_002())
      if (!quick) compare(one, kOptane, what);
  }
  return rows;
}

inline json count_cases(const sentinel::Examination& found) {
  int counts[3] = {};
  for (const sentinel::Case one : found.cases) ++counts[static_cast<int>(one)];
  return {counts[0], counts[1], counts[2]};
}

/// 000 Fig. 7 and 8: 1 GB of resnet32's 6 GB is fast memory, and the length of intervals varies.
inline json figure7(bool quick) {
  json rows = json::array();
  for (const char* machine : {kNuma, kOptane}) {
    const PaperCase one = cases_of_000()[0];
    const Simulated on(one.build(one.batch), machine);
    const double share = 1 / one.peak_gb;
    const auto chosen = sentinel::examine(on.request(share)).value().cuts.size();
    print_head(fmt::format("Intervals of resnet32 128 on {} with {:.0f}% of its peak, {} layer steps; "
                           "chosen by itself: {} intervals",
                           machine, 100 * share, Lifetimes(on.graph()).layer_steps(), chosen),
               "| layers | speed | speed as published | case 1 | case 2 | case 3 |");
    const std::vector<int> lengths =
        quick ? std::vector<int>{2, 8} : std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 24, 32};
    for (const int layers : lengths) {
      const std::string interval = "+interval=" + std::to_string(layers);
      PlanRequest request = on.request(share);
      request.options = {{"interval", std::to_string(layers)}, {"end", "wait"}, {"in_place", "off"}};
      const json cases = count_cases(sentinel::examine(request).value());
      rows.push_back(
          {{"machine", machine},
           {"layers", layers},
           {"speed", number(on.speed("sentinel+" + interval, share))},
           {"speed_as_published", number(on.speed("sentinel+intervals=unequal" + interval, share))},
           {"cases", cases}});
      const json& row = rows.back();
      print_line(fmt::format("| {} | {} | {} | {} | {} | {} |", layers, percent_of(row["speed"]),
                             percent_of(row["speed_as_published"]), cases[0].get<int>(), cases[1].get<int>(),
                             cases[2].get<int>()));
    }
    print_line(fmt::format("| by itself | {} | {} | | | |", percent(on.speed("sentinel+", share)),
                           percent(on.speed(kAsPublished, share))));
  }
  return rows;
}

}  // namespace terrace::bench
