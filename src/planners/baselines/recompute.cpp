#include "planners/baselines/recompute.hpp"

#include <algorithm>

#include "graph/tokens.hpp"

namespace terrace {
namespace {

bool covers(const Stretch& stretch, std::uint32_t kernel) {
  return (stretch.after == kNever || stretch.after < kernel) && kernel <= stretch.until;
}

}  // namespace

Recompute::Recompute(const PlanRequest& request, const StepUses& uses)
    : graph_(request.graph),
      writers_(graph_.tensors.size()),
      last_(graph_.tensors.size()),
      out_(graph_.tensors.size()),
      needed_(graph_.tensors.size()) {
  for (std::uint32_t k = 0; k <= uses.kernels(); ++k) {
    for (const Use& use : uses.of(k)) {
      if (use.writes) writers_[use.tensor.index].push_back(k);
      last_[use.tensor.index] = k;
    }
  }
}

KernelId Recompute::producer(const Absence& absence) const {
  const Stretch& stretch = absence.out[0];
  const std::vector<std::uint32_t>& writers = writers_[absence.tensor.index];
  const auto later = std::upper_bound(writers.begin(), writers.end(), stretch.after);
  if (graph_[absence.tensor].persistent || !stretch.needed || later == writers.begin()) return {};
  const KernelId made{*(later - 1)};
  const Kernel& kernel = graph_[made];
  const bool can =
      kernel.outputs.size() == 1 && !has_token(graph_, kernel) &&
      std::all_of(kernel.inputs.begin(), kernel.inputs.end(), [&](const Operand& input) {
        return input.tensor != absence.tensor && is_there(input.tensor, made.index, stretch.until);
      });
  return can ? made : KernelId{};
}

bool Recompute::is_there(TensorId tensor, std::uint32_t made, std::uint32_t needed) const {
  const std::vector<std::uint32_t>& writers = writers_[tensor.index];
  const auto later = std::upper_bound(writers.begin(), writers.end(), made);
  const bool changed = later != writers.end() && *later < needed;
  const bool lives = graph_[tensor].persistent || last_[tensor.index] >= needed;
  const std::vector<Stretch>& out = out_[tensor.index];
  return lives && !changed && std::none_of(out.begin(), out.end(), [&](const Stretch& stretch) {
           return covers(stretch, needed);
         });
}

bool Recompute::may_leave(const Absence& absence) const {
  const std::vector<std::uint32_t>& needed = needed_[absence.tensor.index];
  return std::none_of(needed.begin(), needed.end(), [&](std::uint32_t kernel) {
    return std::any_of(absence.out.begin(), absence.out.end(),
                       [&](const Stretch& stretch) { return covers(stretch, kernel); });
  });
}

void Recompute::leaves(const Absence& absence) {
  std::vector<Stretch>& out = out_[absence.tensor.index];
  out.insert(out.end(), absence.out.begin(), absence.out.end());
}

void Recompute::choose(const Absence& absence, KernelId producer) {
  leaves(absence);
  for (const Operand& input : graph_[producer].inputs) {
    needed_[input.tensor.index].push_back(absence.out[0].until);
  }
}

}  // namespace terrace
