// SPDX-License-Identifier: Apache-2.0
// What planners move in a step (000 Table 4, 002 Table 4.4) and what kernels then do to each memory (002
// Fig. 4.9), simulated.
#pragma once

#include "graph/operand_tensors.hpp"
#include "sentinel_simulated.hpp"

namespace terrace::bench {

/// Gigabytes that 002 Table 4.4 has for one step.
struct PaperTraffic {
  const char* model;
  double active_list, autotm, sentinel;
};
inline constexpr PaperTraffic kTraffic[] = {{"resnet32", 3.1, 5.1, 8},
                                            {"bert-large, 128 tokens", 2.8, 2.3, 4},
                                            {"dcgan", 0.8, 0.7, 1.2},
                                            {"lstm", 0.7, 1.2, 1.2},
                                            {"mobilenet, 32x32", 0.55, 0.8, 0.95}};

inline double moved_gb(const Plan& plan) {
  double sum = 0;
  for (const Traffic& moved : plan.prediction.moved) sum += static_cast<double>(moved.bytes.count) / 1e9;
  return sum;
}

/// Both memories' bytes a second: by kernels in fast and in slow memory, and with what copies do there.
struct Bandwidth {
  double fast = 0, slow = 0, fast_with_copies = 0, slow_with_copies = 0;
};

inline Bandwidth bandwidth(const Simulated& on, const Plan& plan) {
  Bandwidth sum;
  for (const Instruction& instruction : plan.instructions) {
    if (const auto* run = std::get_if<Run>(&instruction)) {
      std::size_t operand = 0;
      for_each_operand_tensor(on.graph()[run->kernel], [&](TensorId tensor) {
        const auto bytes = static_cast<double>(on.graph()[tensor].bytes.count);
        (run->tiers[operand++] == TierId{0} ? sum.fast : sum.slow) += bytes / 1e9;
      });
    }
  }
  const double seconds = plan.prediction.step.count(), moved = moved_gb(plan);
  sum.fast_with_copies = (sum.fast + moved) / seconds;
  sum.slow_with_copies = (sum.slow + moved) / seconds;
  sum.fast /= seconds;
  sum.slow /= seconds;
  return sum;
}

inline json traffic_row(const PaperCase& one, const PaperTraffic& paper) {
  const Simulated on(one.build(one.batch), kOptane);
  json row{{"model", one.name}, {"batch", one.batch}, {"peak_bytes", on.peak().count}};
  std::string line =
      fmt::format("| {} {} | {:.2f} |", one.name, one.batch, static_cast<double>(on.peak().count) / 1e9);
  for (const std::string planner : {"active-list", kAutoTmSync, "sentinel", "sentinel+"}) {
    const auto plan = on.plan(planner, kUsualShare);
    if (!plan) continue;
    const Bandwidth used = bandwidth(on, *plan);
    row["planners"][planner] = {{"moved_gb", moved_gb(*plan)},
                                {"fast_gbs", used.fast},
                                {"slow_gbs", used.slow},
                                {"fast_with_copies_gbs", used.fast_with_copies},
                                {"slow_with_copies_gbs", used.slow_with_copies}};
    line += fmt::format(" {:.3f}; {:.1f}, {:.1f} |", moved_gb(*plan), used.fast, used.slow);
  }
  print_line(line + fmt::format(" {}, {}, {} |", paper.active_list, paper.autotm, paper.sentinel));
  return row;
}

/// 002 Table 4.4 and Fig. 4.9.
inline json traffic(bool quick) {
  json rows = json::array();
  print_head(
      "Moved in a step at 20%, GB; what kernels use of fast and of slow memory, GB/s; optane-sentinel",
      "| model, batch | peak GB | active-list | autotm-sync | sentinel | sentinel+ | 002: IAL, AutoTM, "
      "Sentinel |");
  for (const PaperCase& one : cases_of_002()) {
    for (const PaperTraffic& paper : kTraffic)
      if (one.name == paper.model && (!quick || one.name == "resnet32"))
        rows.push_back(traffic_row(one, paper));
  }
  return rows;
}

}  // namespace terrace::bench
