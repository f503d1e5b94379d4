// SPDX-License-Identifier: Apache-2.0
// Attributes the time that a simulated step loses against one with everything in fast memory.
#pragma once

#include "migration/units.hpp"
#include "sentinel_simulated.hpp"
#include "terrace/simulate.hpp"

namespace terrace::bench {

/// Losses as shares of the step with everything in fast memory.
struct Losses {
  double in_place = 0;       ///< because kernels use slow memory
  double beside_copies = 0;  ///< because copies slow kernels down
  double waiting = 0;        ///< because no kernel runs
};

inline Losses losses(const Simulated& on, const PlanRequest& request, const Plan& plan) {
  const KernelClock clock(request.graph, request.machine, request.profile);
  const Timeline timeline = simulate(request.graph, request.machine, clock, plan);
  Seconds in_place{0}, beside{0};
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const auto* run = std::get_if<Run>(&plan.instructions[i]);
    if (run == nullptr) continue;
    const Seconds alone = clock.time(run->kernel, run->variant, run->tiers);
    in_place += alone - clock.fast(run->kernel);
    beside += timeline.instructions[i].length() - alone;
  }
  return {in_place / on.fast_only(), beside / on.fast_only(), timeline.exposed / on.fast_only()};
}

/// Returns the peak bytes of tensors that only one layer uses, as a share of the peak of all.
inline double short_lived_share(const Simulated& on, const PlanRequest& request) {
  const migration::StepView view(request);
  std::vector<double> live(view.kernels() + 1);
  for (std::uint32_t i = 0; i < request.graph.tensors.size(); ++i) {
    const Lifetime& lifetime = view.lifetimes[{i}];
    if (!lifetime.used || !migration::is_short_lived(view, {i})) continue;
    for (std::uint32_t k = lifetime.first; k <= lifetime.last; ++k)
      live[k] += static_cast<double>(request.graph.tensors[i].bytes.count);
  }
  return quantile(live, 1) / static_cast<double>(on.peak().count);
}

inline json losses_row(const Simulated& on, const PaperCase& one, const std::string& machine,
                       const std::string& planner, double share) {
  const PlanRequest request = on.request(share);
  const auto plan = on.plan(planner, share);
  if (!plan) return nullptr;
  const Losses lost = losses(on, request, *plan);
  double out = 0, in = 0;
  for (const Traffic& moved : plan->prediction.moved)
    (moved.from == TierId{0} ? out : in) +=
        static_cast<double>(moved.bytes.count) / static_cast<double>(on.peak().count);
  print_line(fmt::format("| {} {} | {} | {:.0f}% | {} | {} | {} | {} | {} | {} | {} |", one.name, one.batch,
                         machine, 100 * share, planner, percent(on.fast_only() / plan->prediction.step),
                         percent(lost.in_place), percent(lost.beside_copies), percent(lost.waiting),
                         percent(out), percent(in)));
  return {{"model", one.name},
          {"batch", one.batch},
          {"machine", machine},
          {"share", share},
          {"planner", planner},
          {"in_place", lost.in_place},
          {"beside_copies", lost.beside_copies},
          {"waiting", lost.waiting},
          {"moved_out", out},
          {"moved_in", in},
          {"short_lived", short_lived_share(on, request)}};
}

inline json losses(bool quick) {
  json rows = json::array();
  print_head("Where time goes, as shares of the fast-only step; bytes moved as shares of the peak",
             "| model, batch | machine | fast | planner | speed | in slow memory | beside copies | waiting | "
             "moved out | moved in |");
  const auto add = [&](const PaperCase& one, const std::string& machine) {
    const Simulated on(one.build(one.batch), machine);
    for (const double share : {0.2, 0.6}) {
      for (const char* planner : {"sentinel+", kAsPublished, "prefetch"})
        rows.push_back(losses_row(on, one, machine, planner, share));
    }
    print_line(fmt::format("| {} {} | {} | short-lived tensors take at most {} of the peak | | | | | | | |",
                           one.name, one.batch, machine,
                           percent(short_lived_share(on, on.request(kUsualShare)))));
  };
  for (const PaperCase& one : cases_of_002()) {
    if (!quick || one.name == "resnet32") add(one, kOptane);
  }
  return rows;
}

}  // namespace terrace::bench
