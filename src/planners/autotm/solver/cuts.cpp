// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/cuts.hpp"

#include <algorithm>
#include <tuple>

namespace terrace::autotm {
namespace {

/// A violation below this share of a kernel's mean time does not matter.
constexpr double kLeastBroken = 2e-3;
constexpr double kLeastConfiguration = 1e-4;
constexpr std::size_t kMostConfigurations = 12;

}  // namespace

Cuts::Cuts(const Flat& flat) : flat_(flat), moves_(flat.kernels.size()), by_kernel_(flat.kernels.size()) {
  double sum = 0;
  for (const Flat::Kernel& kernel : flat.kernels)
    sum += kernel.first < kernel.end ? flat.configurations[kernel.first].time : 0;
  least_ = kLeastBroken * sum / static_cast<double>(flat.kernels.size() + 1);
  for (const Flat::Tensor& tensor : flat.tensors) list_moves(tensor);
}

/// Edges are one move where all begin before any of them ends: nodes ascend along a path, so that none leads
/// to another.
void Cuts::list_moves(const Flat::Tensor& tensor) {
  std::vector<std::uint32_t> beside;
  for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
    if (flat_.is_beside(flat_.edges[e]) && flat_.hidden[e].share > 0) beside.push_back(e);
  }
  const auto key = [&](std::uint32_t e) {
    return std::tuple(flat_.edges[e].beside, flat_.hidden[e].share, e);
  };
  std::sort(beside.begin(), beside.end(), [&](auto a, auto b) { return key(a) < key(b); });
  std::uint32_t kernel = kNone, last_from = 0, first_to = 0;
  for (const std::uint32_t e : beside) {
    const Flat::Edge& edge = flat_.edges[e];
    const auto [time, slower] = flat_.hidden[e];
    std::vector<Moves>& moves = moves_[edge.beside];
    const bool is_same = kernel == edge.beside && moves.back().time == time &&
                         std::max(last_from, edge.from) < std::min(first_to, edge.to);
    const auto place = static_cast<std::uint32_t>(edges_.size());
    if (!is_same) moves.push_back({time, slower, place, place});
    last_from = is_same ? std::max(last_from, edge.from) : edge.from;
    first_to = is_same ? std::min(first_to, edge.to) : edge.to;
    kernel = edge.beside;
    edges_.push_back(e);
    ++moves.back().end;
  }
}

std::size_t Cuts::find(const std::vector<double>& edges, const std::vector<double>& configurations) {
  std::size_t found = 0;
  for (std::uint32_t k = 0; k < flat_.kernels.size(); ++k) found += find_one(k, edges, configurations);
  return found;
}

bool Cuts::find_one(std::uint32_t k, const std::vector<double>& edges,
                    const std::vector<double>& configurations) {
  if (moves_[k].empty()) return false;
  take_moves(k, edges);
  double together = 0;
  for (const Part& move : point_.moves) together += move.time;
  if (together <= flat_.configurations[flat_.kernels[k].first].time) return false;
  take_configurations(k, configurations);
  if (point_.configurations.empty()) return false;
  see_known(k, edges, configurations);
  if (envelope_.solve(point_.configurations, point_.moves) < point_.known + least_) return false;
  add(k, envelope_.charges());
  return true;
}

double Cuts::share(const Moves& moves, const std::vector<double>& edges) const {
  double sum = 0;
  for (std::uint32_t i = moves.first; i < moves.end; ++i) sum += edges[edges_[i]];
  return std::clamp(sum, 0.0, 1.0);
}

/// Keeps the moves of which the largest part of their time is taken.
void Cuts::take_moves(std::uint32_t k, const std::vector<double>& edges) {
  std::vector<std::pair<double, const Moves*>> shares;
  for (const Moves& moves : moves_[k]) {
    if (const double taken = share(moves, edges); taken > kLeastConfiguration)
      shares.emplace_back(taken, &moves);
  }
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) {
    return a.first * a.second->time > b.first * b.second->time;
  });
  if (shares.size() > Envelope::kMostMoves) shares.resize(Envelope::kMostMoves);
  point_.taken.clear();
  point_.moves.clear();
  for (const auto& [taken, moves] : shares) {
    point_.taken.push_back(moves);
    point_.moves.push_back({moves->time, taken});
  }
}

/// Finds nothing where the moves are too many.
void Cuts::take_configurations(std::uint32_t k, const std::vector<double>& configurations) {
  const Flat::Kernel& kernel = flat_.kernels[k];
  point_.configurations.clear();
  double sum = 0;
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
    if (configurations[c] <= kLeastConfiguration) continue;
    point_.configurations.push_back({flat_.configurations[c].time, configurations[c]});
    sum += configurations[c];
  }
  for (Part& one : point_.configurations) one.share /= sum;
  if (point_.configurations.size() > kMostConfigurations) point_.configurations.clear();
}

void Cuts::see_known(std::uint32_t k, const std::vector<double>& edges,
                     const std::vector<double>& configurations) {
  double own = 0, all = 0, slower = 0;
  for (const Part& one : point_.configurations) own += one.share * one.time;
  for (const Moves& moves : moves_[k]) {
    const double taken = share(moves, edges);
    all += taken * moves.time;
    slower += taken * moves.slower;
  }
  point_.known = std::max({own, all, flat_.configurations[flat_.kernels[k].first].time + slower});
  for (const std::uint32_t i : by_kernel_[k])
    point_.known = std::max(point_.known, own + violation(cuts_[i], edges, configurations));
}

void Cuts::add(std::uint32_t k, const std::vector<double>& charges) {
  const Flat::Kernel& kernel = flat_.kernels[k];
  Cut cut{k, static_cast<std::uint32_t>(terms_.size()), 0, static_cast<std::uint32_t>(less_.size())};
  std::vector<double> times;
  for (std::size_t i = 0; i < point_.taken.size(); ++i) {
    times.push_back(point_.taken[i]->time);
    for (std::uint32_t place = point_.taken[i]->first; charges[i] > 0 && place < point_.taken[i]->end;
         ++place)
      terms_.push_back({edges_[place], charges[i]});
  }
  cut.end = static_cast<std::uint32_t>(terms_.size());
  const Rests rests(times, charges);
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
    const double time = flat_.configurations[c].time;
    less_.push_back(time - rests.of(time));
  }
  by_kernel_[k].push_back(static_cast<std::uint32_t>(cuts_.size()));
  cuts_.push_back(cut);
}

void Cuts::adopt(const Cuts& other, const std::vector<std::uint32_t>& edges) {
  std::vector<double> charged(other.flat_.edges.size()), charges;
  for (const Cut& cut : other.cuts_) {
    for (std::uint32_t t = cut.first; t < cut.end; ++t)
      charged[other.terms_[t].edge] = other.terms_[t].charge;
    point_.taken.clear();
    charges.clear();
    for (const Moves& moves : moves_[cut.kernel]) {
      const std::uint32_t edge = edges[edges_[moves.first]];
      if (edge == kNone || charged[edge] == 0 || charges.size() == Envelope::kMostMoves) continue;
      point_.taken.push_back(&moves);
      charges.push_back(charged[edge]);
    }
    add(cut.kernel, charges);
    for (std::uint32_t t = cut.first; t < cut.end; ++t) charged[other.terms_[t].edge] = 0;
  }
}

void Cuts::charge(const Cut& cut, double price, std::vector<double>& charges,
                  std::vector<double>& less) const {
  if (price == 0) return;
  for (std::uint32_t t = cut.first; t < cut.end; ++t) charges[terms_[t].edge] += price * terms_[t].charge;
  const Flat::Kernel& kernel = flat_.kernels[cut.kernel];
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c)
    less[c] += price * less_[cut.less + c - kernel.first];
}

double Cuts::violation(const Cut& cut, const std::vector<double>& edges,
                       const std::vector<double>& configurations) const {
  double sum = 0;
  for (std::uint32_t t = cut.first; t < cut.end; ++t) sum += terms_[t].charge * edges[terms_[t].edge];
  const Flat::Kernel& kernel = flat_.kernels[cut.kernel];
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c)
    sum -= configurations[c] * less_[cut.less + c - kernel.first];
  return sum;
}

}  // namespace terrace::autotm
