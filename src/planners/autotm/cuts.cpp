#include "planners/autotm/cuts.hpp"

#include <algorithm>
#include <tuple>

namespace terrace::autotm {
namespace {

/// Of a kernel's time on average: what is broken by less is no matter.
constexpr double kLeastBroken = 2e-3;
constexpr double kLeastShare = 1e-4;

}  // namespace

Cuts::Cuts(const Flat& flat) : flat_(flat), moves_(flat.kernels.size()), by_kernel_(flat.kernels.size()) {
  double mean = 0;
  for (const Flat::Kernel& kernel : flat.kernels)
    mean += kernel.first < kernel.end ? flat.configurations[kernel.first].time : 0;
  least_ = kLeastBroken * mean / static_cast<double>(flat.kernels.size() + 1);
  list_moves();
}

/// Edges of one tensor are one move where none of them leads to another: nodes ascend along a path.
void Cuts::list_moves() {
  for (const Flat::Tensor& tensor : flat_.tensors) {
    std::vector<std::uint32_t> beside;
    for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
      if (flat_.is_beside(flat_.edges[e]) && flat_.hidden[e].share > 0) beside.push_back(e);
    }
    const auto key = [&](std::uint32_t e) {
      return std::tuple(flat_.edges[e].beside, flat_.hidden[e].share, e);
    };
    std::sort(beside.begin(), beside.end(), [&](auto a, auto b) { return key(a) < key(b); });
    std::uint32_t last_from = 0, first_to = 0;
    const Flat::Edge* before = nullptr;
    for (const std::uint32_t e : beside) {
      const Flat::Edge& edge = flat_.edges[e];
      std::vector<Moves>& moves = moves_[edge.beside];
      const auto end = static_cast<std::uint32_t>(edges_.size());
      const bool same = before != nullptr && before->beside == edge.beside &&
                        moves.back().time == flat_.hidden[e].share &&
                        std::max(last_from, edge.from) < std::min(first_to, edge.to);
      last_from = same ? std::max(last_from, edge.from) : edge.from;
      first_to = same ? std::min(first_to, edge.to) : edge.to;
      if (!same) moves.push_back({flat_.hidden[e].share, end, end});
      edges_.push_back(e);
      ++moves.back().end;
      before = &edge;
    }
  }
}

double Cuts::share(const Moves& moves, const std::vector<double>& edges) const {
  double sum = 0;
  for (std::uint32_t i = moves.first; i < moves.end; ++i) sum += edges[edges_[i]];
  return std::clamp(sum, 0.0, 1.0);
}

std::size_t Cuts::find(const std::vector<double>& edges, const std::vector<double>& configurations) {
  std::size_t found = 0;
  for (std::uint32_t k = 0; k < flat_.kernels.size(); ++k) found += find(k, edges, configurations);
  return found;
}

double Cuts::known(std::uint32_t k, const std::vector<double>& edges,
                   const std::vector<double>& configurations, double whole) const {
  const Flat::Kernel& kernel = flat_.kernels[k];
  double own = 0, slower = 0, all = 0;
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c)
    own += configurations[c] / whole * flat_.configurations[c].time;
  for (const Moves& moves : moves_[k]) {
    const double taken = share(moves, edges);
    all += taken * moves.time;
    slower += taken * flat_.hidden[edges_[moves.first]].slower;
  }
  double most = std::max({own, flat_.configurations[kernel.first].time + slower, all});
  for (const std::uint32_t i : by_kernel_[k]) {
    const Cut& cut = cuts_[i];
    double its = own;
    for (std::uint32_t c = kernel.first; c < kernel.end; ++c)
      its -= configurations[c] / whole * less_[cut.less + c - kernel.first];
    for (std::uint32_t t = cut.first; t < cut.end; ++t) its += terms_[t].charge * edges[terms_[t].edge];
    most = std::max(most, its);
  }
  return most;
}

bool Cuts::find(std::uint32_t k, const std::vector<double>& edges,
                const std::vector<double>& configurations) {
  const Flat::Kernel& kernel = flat_.kernels[k];
  std::vector<std::pair<double, const Moves*>> weighed;
  for (const Moves& moves : moves_[k]) {
    const double taken = share(moves, edges);
    if (taken > kLeastShare) weighed.emplace_back(taken * moves.time, &moves);
  }
  if (weighed.empty()) return false;
  std::stable_sort(weighed.begin(), weighed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (weighed.size() > Envelope::kMostMoves) weighed.resize(Envelope::kMostMoves);
  std::vector<const Moves*> taken;
  std::vector<Part> moves, choices;
  std::vector<double> times;
  double together = 0;
  for (const auto& [weight, one] : weighed) {
    taken.push_back(one);
    moves.push_back({one->time, share(*one, edges)});
    times.push_back(one->time);
    together += one->time;
  }
  // All of them are hidden.
  if (together <= flat_.configurations[kernel.first].time) return false;
  double whole = 0;
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c) whole += configurations[c];
  if (whole <= 0) return false;
  double some = 0;
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
    if (configurations[c] < kLeastShare) continue;
    choices.push_back({flat_.configurations[c].time, configurations[c]});
    some += configurations[c];
  }
  if (choices.empty() || choices.size() > 12) return false;
  for (Part& one : choices) one.share /= some;
  const double mean = envelope_.solve(choices, moves);
  if (mean - known(k, edges, configurations, whole) < least_) return false;
  const std::vector<double> charges = envelope_.charges();
  double proved = 0;
  for (const Part& one : choices) proved += one.share * Envelope::rest(one.time, times, charges);
  for (std::size_t i = 0; i < moves.size(); ++i) proved += moves[i].share * charges[i];
  if (proved - known(k, edges, configurations, whole) < least_) return false;
  add(k, taken, charges);
  return true;
}

void Cuts::add(std::uint32_t k, const std::vector<const Moves*>& moves, const std::vector<double>& charges) {
  const Flat::Kernel& kernel = flat_.kernels[k];
  Cut cut{k, static_cast<std::uint32_t>(terms_.size()), 0, static_cast<std::uint32_t>(less_.size())};
  std::vector<double> times, kept;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (charges[i] <= 0) continue;
    times.push_back(moves[i]->time);
    kept.push_back(charges[i]);
    for (std::uint32_t e = moves[i]->first; e < moves[i]->end; ++e) terms_.push_back({edges_[e], charges[i]});
  }
  cut.end = static_cast<std::uint32_t>(terms_.size());
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
    const double time = flat_.configurations[c].time;
    less_.push_back(time - Envelope::rest(time, times, kept));
  }
  by_kernel_[k].push_back(static_cast<std::uint32_t>(cuts_.size()));
  cuts_.push_back(cut);
}

}  // namespace terrace::autotm
