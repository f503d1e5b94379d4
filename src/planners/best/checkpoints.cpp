#include "planners/best/checkpoints.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "terrace/lifetimes.hpp"

namespace terrace::best {
namespace {

/// Of fast memory.
constexpr double kSegments[] = {1.0 / 8, 1.0 / 4, 3.0 / 8,
                                1.0 / 2, 1,       std::numeric_limits<double>::infinity()};
/// Micro-batches: tensors of one are gone when the next begins.
constexpr double kSeveralPasses = 1.5;

/// All uses of each tensor, in order.
std::vector<std::vector<std::pair<std::uint32_t, Use>>> uses_by_tensor(const Graph& graph,
                                                                       const StepUses& uses) {
  std::vector<std::vector<std::pair<std::uint32_t, Use>>> all(graph.tensors.size());
  for (std::uint32_t k = 0; k <= uses.kernels(); ++k) {
    for (const Use& use : uses.of(k)) all[use.tensor.index].emplace_back(k, use);
  }
  return all;
}

}  // namespace

Checkpoints::Checkpoints(const PlanRequest& request, const StepUses& uses, const bounds::Problem& problem,
                         const bounds::Multipliers& multipliers)
    : request_(request), uses_(uses), problem_(problem), tensors_(request.graph.tensors.size()) {
  find_peak();
  if (full_before_.back() == 0) return;
  find_candidates();
  count_passes();
  find_leaders();
  price_making();
  price_keeping(multipliers);
  find_amounts();
}

void Checkpoints::find_peak() {
  const Lifetimes lifetimes(request_.graph);
  full_before_.push_back(0);
  for (const Bytes live : lifetimes.live_bytes()) {
    full_before_.push_back(full_before_.back() + (live > request_.budget[0] ? 1 : 0));
  }
  if (full_before_.back() == 0) return;
  peak_ = lifetimes.peak_kernel().index;
  for (std::uint32_t k = 0; k < problem_.moments(); ++k) {
    if (request_.graph.kernels[k].phase == Phase::forward) forward_ += problem_.kernels[k].fast;
  }
}

/// What forward kernels alone write. Over the longest of its gaps; what has none is not needed backward.
void Checkpoints::find_candidates() {
  const Graph& graph = request_.graph;
  const auto all = uses_by_tensor(graph, uses_);
  for (std::uint32_t i = 0; i < tensors_; ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (tensor.persistent || is_given(tensor) || tensor.kind == TensorKind::workspace || all[i].empty())
      continue;
    Candidate candidate{{i}, {}, all[i].front().first, static_cast<double>(tensor.bytes.count)};
    std::uint32_t longest = 0;
    bool forward = tensor.bytes.count > 0;
    for (std::size_t u = 0; u < all[i].size() && forward; ++u) {
      const auto& [kernel, use] = all[i][u];
      if (kernel == uses_.kernels() || (use.writes && graph.kernels[kernel].phase != Phase::forward))
        forward = false;
      if (use.next == kNever || !use.next_reads || use.next == uses_.kernels()) continue;
      const std::uint32_t full = full_before_[use.next] - full_before_[kernel + 1];
      if (full <= longest) continue;
      longest = full;
      candidate.window = {kernel, use.next};
    }
    if (!forward) continue;
    if (longest == 0) candidate.window.after = all[i].back().first;
    candidates_.push_back(candidate);
  }
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.made < b.made; });
}

void Checkpoints::count_passes() {
  double saved = 0, at_peak = 0;
  for (const Candidate& candidate : candidates_) {
    if (!candidate.is_saved()) continue;
    saved += candidate.bytes;
    if (candidate.is_discarded_at(peak_)) at_peak += candidate.bytes;
  }
  if (at_peak > 0) passes_ = saved / at_peak;
}

/// One run makes all outputs of a kernel: they follow the largest of those that are needed backward.
void Checkpoints::find_leaders() {
  of_.resize(tensors_);
  for (Candidate& candidate : candidates_) of_[candidate.tensor.index] = &candidate;
  for (const Kernel& kernel : request_.graph.kernels) {
    const Candidate* leader = nullptr;
    const auto is_better = [&](const Candidate& one) {
      if (leader == nullptr || one.is_saved() != leader->is_saved())
        return leader == nullptr || one.is_saved();
      return one.bytes > leader->bytes;
    };
    for (const Operand& output : kernel.outputs) {
      const Candidate* one = of_[output.tensor.index];
      if (one != nullptr && is_better(*one)) leader = one;
    }
    for (const Operand& output : kernel.outputs) {
      Candidate* one = of_[output.tensor.index];
      if (one != nullptr && one != leader) one->leader = leader;
    }
  }
}

/// A kernel's time counts for the leader. What is not needed backward is made for what is.
void Checkpoints::price_making() {
  const Graph& graph = request_.graph;
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    Candidate* led = nullptr;
    for (const Operand& output : graph.kernels[k].outputs) {
      Candidate* one = of_[output.tensor.index];
      if (one != nullptr && (led == nullptr || led->leader == one)) led = one;
    }
    if (led == nullptr) continue;
    led->making += problem_.kernels[k].fast;
    for (const Operand& input : graph.kernels[k].inputs) {
      const Candidate* from = of_[input.tensor.index];
      if (from != nullptr && from != led && !from->is_saved()) led->making += from->making;
    }
    led->making = std::min(led->making, problem_.compute);
  }
}

/// What its cheapest path costs beside the memory that its kernels need anyway.
void Checkpoints::price_keeping(const bounds::Multipliers& multipliers) {
  std::vector<std::uint32_t> number(tensors_, kNever);
  for (std::uint32_t t = 0; t < problem_.tensors.size(); ++t) number[problem_.tensors[t].id.index] = t;
  const bounds::UnitCosts priced(problem_, multipliers);
  bounds::Paths paths(problem_);
  for (Candidate& candidate : candidates_) {
    if (number[candidate.tensor.index] == kNever) continue;
    const bounds::BoundTensor& tensor = problem_.tensors[number[candidate.tensor.index]];
    candidate.keeping = paths.cheapest(tensor, multipliers, priced, bounds::Recompute::no).cost;
    for (std::uint32_t u = tensor.uses; u < tensor.uses_end; ++u) {
      const std::uint32_t kernel = problem_.uses[u].kernel;
      candidate.keeping -= tensor.bytes * priced.hold(kernel, std::min(kernel + 1, problem_.moments()));
    }
  }
  for (Candidate& candidate : candidates_) {
    if (candidate.leader != nullptr) of_[candidate.leader->tensor.index]->keeping += candidate.keeping;
  }
}

/// In the order of their prices; of one price what is away for longest.
void Checkpoints::find_amounts() {
  std::vector<Candidate*> order;
  double all = 0, bytes = 0;
  for (Candidate& candidate : candidates_) {
    if (!candidate.is_saved() || candidate.leader != nullptr || candidate.keeping <= 0) continue;
    order.push_back(&candidate);
    all += candidate.bytes;
  }
  std::stable_sort(order.begin(), order.end(), [](const Candidate* a, const Candidate* b) {
    if (a->price() != b->price()) return a->price() < b->price();
    return a->window.until - a->window.after > b->window.until - b->window.after;
  });
  for (Candidate* candidate : order) {
    bytes += candidate->bytes;
    candidate->amount = bytes < all ? bytes / all : 1;
  }
  for (Candidate& candidate : candidates_) {
    if (candidate.leader != nullptr) candidate.amount = candidate.leader->amount;
  }
}

/// By kernel: whether a segment begins there. The least bytes that are used beyond cuts.
std::vector<bool> Checkpoints::cuts(const Choice& choice) const {
  const std::uint32_t end = candidates_.empty() ? 0 : candidates_.back().made + 1;
  std::vector<double> made(end + 1), beyond(end + 1), cost(end + 1);
  for (const Candidate& candidate : candidates_) {
    if (!candidate.is_in(choice)) continue;
    if (candidate.is_saved()) made[candidate.made + 1] += candidate.bytes;
    beyond[candidate.made + 1] += candidate.bytes;
    if (candidate.window.after < end) beyond[candidate.window.after + 1] -= candidate.bytes;
  }
  for (std::uint32_t k = 1; k <= end; ++k) made[k] += made[k - 1], beyond[k] += beyond[k - 1];
  std::vector<std::uint32_t> before(end + 1);
  std::deque<std::uint32_t> cheapest;  // cuts that a segment could begin with, ascending, as are their costs
  for (std::uint32_t k = 1; k <= end; ++k) {
    while (!cheapest.empty() && cost[cheapest.back()] >= cost[k - 1]) cheapest.pop_back();
    cheapest.push_back(k - 1);
    while (cheapest.size() > 1 && made[k] - made[cheapest.front()] > choice.segment) cheapest.pop_front();
    before[k] = cheapest.front();
    cost[k] = cost[before[k]] + (k < end ? beyond[k] : 0);
  }
  std::vector<bool> cut(end + 1);
  for (std::uint32_t k = end; k > 0; k = before[k]) cut[before[k]] = true;
  return cut;
}

/// What is discarded: no checkpoints, nor what the last of several segments makes, which is needed at once.
std::vector<const Checkpoints::Candidate*> Checkpoints::within(const Choice& choice) const {
  const std::vector<bool> cut = cuts(choice);
  std::vector<std::uint32_t> cuts_before{0};
  for (const bool one : cut) cuts_before.push_back(cuts_before.back() + (one ? 1 : 0));
  const auto is_discarded = [&](const Candidate& candidate) {
    const auto last = std::min<std::size_t>(candidate.window.after, cut.size() - 1);
    const std::uint32_t cuts = cuts_before[candidate.made + 1];
    return candidate.is_in(choice) && cuts_before[last + 1] == cuts &&
           (cuts == 1 || cuts < cuts_before.back());
  };
  std::vector<const Candidate*> discarded;
  for (const Candidate& candidate : candidates_) {
    if (is_discarded(candidate.leader != nullptr ? *candidate.leader : candidate))
      discarded.push_back(&candidate);
  }
  return discarded;
}

/// What does not fit at the worst moment leaves before it and comes back after it; where a step has several
/// passes, while forward kernels run and while the others do.
double Checkpoints::estimate(const Choice& choice) const {
  const RecomputeRewrite step(request_, uses_, discarded(choice));
  const Lifetimes lifetimes(step.request().graph);
  const auto peak = static_cast<double>(lifetimes.peak_bytes().count);
  const double over = passes_ * std::max(0.0, peak - problem_.capacity);
  double all = 0, before = 0;
  for (std::uint32_t k = 0; k < step.request().graph.kernels.size(); ++k) {
    if (k == lifetimes.peak_kernel().index) before = all;
    all += problem_.kernels[step.kernel_of({k}).index].fast;
  }
  if (passes_ > kSeveralPasses) before = forward_;
  const bounds::Direction &out = problem_.out, &in = problem_.in;
  return std::max(before + over * out.cost, over * out.busy) +
         std::max(all - before + over * in.cost, over * in.busy);
}

std::vector<Checkpoints::Choice> Checkpoints::choices(std::uint64_t count) const {
  std::vector<Choice> choices;
  const bool any = std::any_of(candidates_.begin(), candidates_.end(),
                               [](const Candidate& candidate) { return candidate.amount <= 1; });
  if (!any) return choices;
  const auto amounts = static_cast<int>(std::max<std::uint64_t>(count / std::size(kSegments), 1));
  for (const double share : kSegments) {
    for (int i = 1; i <= amounts; ++i) {
      choices.push_back({share * problem_.capacity, static_cast<double>(i) / amounts});
      choices.back().step = estimate(choices.back());
    }
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.step < b.step; });
  return choices;
}

std::vector<DiscardWindow> Checkpoints::discarded(const Choice& choice) const {
  std::vector<DiscardWindow> discarded(tensors_);
  for (const Candidate* candidate : within(choice)) discarded[candidate->tensor.index] = candidate->window;
  return discarded;
}

}  // namespace terrace::best
