// SPDX-License-Identifier: Apache-2.0
// 001 Fig. 1 and 10: what AutoTM does with inception4 as DRAM grows.
#pragma once

#include "autotm_tables.hpp"

namespace terrace::bench {

/// What lies in DRAM while kernels run, by bytes, and what moves.
struct Strategy {
  double inputs = 0, all_inputs = 0, outputs = 0, all_outputs = 0;
  double out_gb = 0, in_gb = 0;
};

inline Strategy strategy_of(const Graph& graph, const Plan& plan) {
  Strategy found;
  for (const Instruction& instruction : plan.instructions) {
    if (const auto* copy = std::get_if<Copy>(&instruction)) {
      for (const TensorId tensor : copy->tensors)
        (copy->to.index > 0 ? found.out_gb : found.in_gb) +=
            static_cast<double>(graph[tensor].bytes.count) / 1e9;
    } else if (const auto* run = std::get_if<Run>(&instruction)) {
      const Kernel& kernel = graph[run->kernel];
      for (std::size_t i = 0; i < kernel.inputs.size() + kernel.outputs.size(); ++i) {
        const bool is_input = i < kernel.inputs.size();
        const Operand& operand = is_input ? kernel.inputs[i] : kernel.outputs[i - kernel.inputs.size()];
        const auto bytes = static_cast<double>(operand.touched.count);
        (is_input ? found.all_inputs : found.all_outputs) += bytes;
        if (run->tiers[i].index == 0) (is_input ? found.inputs : found.outputs) += bytes;
      }
    }
  }
  return found;
}

inline json figures_1_and_10(bool quick) {
  constexpr std::int64_t kBatch = 1472;
  const Simulated on(zoo_model("inception4", kBatch), kPaperMachine);
  json rows = json::array();
  print_head(
      fmt::format("inception4 {} by its share of DRAM; peak {:.0f} GB", kBatch,
                  static_cast<double>(on.peak().count) / 1e9),
      "| DRAM | planner | time over all-DRAM | speed over all-PMM | inputs in DRAM | outputs in DRAM | GB to "
      "PMM | GB to DRAM |");
  const double all_pmm = 1 / on.speed("all-slow", 0.01).value_or(NAN);
  for (const double share :
       quick ? std::vector{0.2} : std::vector{0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0}) {
    for (const char* planner :
         {"first-touch", "autotm-static+iterations=1000", "autotm-sync+iterations=1000"}) {
      const auto plan = on.plan(planner, share);
      if (!plan) continue;
      const Strategy found = strategy_of(on.graph(), *plan);
      const double slower = plan->prediction.step / on.fast_only();
      rows.push_back({{"share", share},
                      {"planner", planner},
                      {"slower", slower},
                      {"over_all_pmm", all_pmm / slower},
                      {"inputs", found.inputs / found.all_inputs},
                      {"outputs", found.outputs / found.all_outputs},
                      {"out_gb", found.out_gb},
                      {"in_gb", found.in_gb}});
      print_line(fmt::format("| {:.0f}% | {} | {:.2f} | {:.2f} | {:.0f}% | {:.0f}% | {:.0f} | {:.0f} |",
                             100 * share,
                             std::string_view(planner).substr(0, std::string_view(planner).find('+')), slower,
                             all_pmm / slower, 100 * found.inputs / found.all_inputs,
                             100 * found.outputs / found.all_outputs, found.out_gb, found.in_gb));
    }
  }
  print_line(fmt::format("\nall-PMM is {:.2f} times as slow as all-DRAM", all_pmm));
  return rows;
}

}  // namespace terrace::bench
