// SPDX-License-Identifier: Apache-2.0
#include "train/counted_profile.hpp"

#include <algorithm>

#include "planners/table.hpp"
#include "profile/roofline.hpp"

namespace terrace {

bool wants_accesses(std::string_view planner) {
  const auto choice = choose_planner(planner);
  return choice && (choice->planner->name == "sentinel" || choice->planner->name == "sentinel+");
}

bool has_accesses(const Graph& graph, const Profile& profile) {
  return std::equal(graph.kernels.begin(), graph.kernels.end(), profile.kernels.begin(),
                    profile.kernels.end(), [](const Kernel& kernel, const KernelProfile& known) {
                      return known.operands.size() == operand_count(kernel);
                    });
}

Result<Profile> with_accesses(const Program& program, const Machine& machine, Profile profile,
                              const VerifiedPlan& plan, const TrainerOptions& options,
                              const std::function<void(Trainer&)>& fill, const ProgressSink& progress) {
  auto trainer = Trainer::start(program, plan, machine, options);
  if (!trainer) return trainer.error();
  fill(*trainer);
  auto counted = trainer->counted_step();
  if (!counted) return counted.error();
  remember_accesses(program, *counted, progress);
  for (std::size_t k = 0; k < profile.kernels.size(); ++k)
    profile.kernels[k].operands = std::move((*counted)[k]);
  return profile;
}

}  // namespace terrace
