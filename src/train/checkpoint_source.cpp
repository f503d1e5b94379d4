#include "train/checkpoint_source.hpp"

#include <algorithm>
#include <map>

namespace terrace {
namespace {

class Walk {
 public:
  Walk(const Graph& graph, const Plan& plan) : graph_(graph) {
    const auto end = static_cast<std::uint32_t>(plan.instructions.size());
    for (const Alloc& region : plan.start) {
      if (graph[region.tensor].persistent)
        kept_[{region.tensor.index, region.tier.index}] = {region.tensor, {region.tier, region.offset}, end};
    }
    for (position_ = 0; position_ < end; ++position_) {
      std::visit([this](const auto& one) { pass(one); }, plan.instructions[position_]);
    }
  }

  std::vector<KeptTensor> longest() const {
    std::vector<KeptTensor> found;
    for (const auto& [key, kept] : kept_) {
      if (found.empty() || found.back().tensor != kept.tensor) {
        found.push_back(kept);
      } else if (found.back().until < kept.until) {
        found.back() = kept;
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const KeptTensor& a, const KeptTensor& b) { return a.until < b.until; });
    return found;
  }

 private:
  void pass(const Alloc&) {}
  void pass(const Wait&) {}
  void pass(const Free& free) { change(free.tensor, free.tier); }
  void pass(const Copy& copy) {
    for (const TensorId tensor : copy.tensors) change(tensor, copy.to);
  }
  void pass(const Run& run) {
    const Kernel& kernel = graph_[run.kernel];
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i)
      change(kernel.outputs[i].tensor, run.tiers[kernel.inputs.size() + i]);
  }

  void change(TensorId tensor, TierId tier) {
    const auto kept = kept_.find({tensor.index, tier.index});
    if (kept != kept_.end()) kept->second.until = std::min(kept->second.until, position_);
  }

  const Graph& graph_;
  std::uint32_t position_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, KeptTensor> kept_;  // by tensor and tier
};

}  // namespace

std::vector<KeptTensor> kept_tensors(const Graph& graph, const Plan& plan) {
  return Walk(graph, plan).longest();
}

}  // namespace terrace
