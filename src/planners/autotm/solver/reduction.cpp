// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/reduction.hpp"

#include <algorithm>
#include <limits>

namespace terrace::autotm {
namespace {

class Reducing {
 public:
  Reducing(const Flat& whole, Reduction& made, double share)
      : whole_(whole),
        flat_(made.flat),
        links_(made.links),
        tensors_(made.tensors),
        edges_(made.edges),
        kept_(whole.links.size(), kNone),
        share_(share) {
    edges_.resize(whole.edges.size(), kNone);
    flat_.moments = whole.moments;
    flat_.capacity = whole.capacity;
    flat_.unit = whole.unit;
    flat_.room = whole.room;
    // There are at most as many; growing the vectors would copy them and touch twice the memory.
    flat_.edges.reserve(whole.edges.size());
    flat_.hidden.reserve(whole.edges.size());
    flat_.tensors.reserve(whole.tensors.size());
    flat_.configurations.reserve(whole.configurations.size());
    flat_.kernels.reserve(whole.kernels.size());
    flat_.links.reserve(whole.links.size());
    for (const Flat::Kernel& kernel : whole.kernels) {
      if (kernel.first < kernel.end) mean_ += whole.configurations[kernel.first].time;
    }
    mean_ /= static_cast<double>(std::max<std::size_t>(1, whole.kernels.size()));
  }

  void run() {
    for (std::uint32_t k = 0; k < whole_.kernels.size(); ++k) add_kernel(k);
    for (std::uint32_t t = 0; t < whole_.tensors.size(); ++t) {
      if (is_idle(whole_.tensors[t])) continue;
      tensors_.push_back(t);
      add_tensor(whole_.tensors[t]);
    }
  }

 private:
  /// Half of what may be lost is shared out by kernels' times, half evenly: many kernels take hardly any
  /// time.
  double slack(const Flat::Kernel& kernel) const {
    return share_ * (whole_.configurations[kernel.first].time + mean_) / 2;
  }

  /// Returns whether one configuration asks for no more than the other.
  static bool stands_for(const Flat::Configuration& one, const Flat::Configuration& other) {
    const bool takes_less = one.bytes == 0 || (one.row == other.row && one.bytes <= other.bytes);
    return (one.mask & ~other.mask) == 0 && takes_less;
  }

  void add_kernel(std::uint32_t k) {
    const Flat::Kernel& kernel = whole_.kernels[k];
    Flat::Kernel made = kernel;
    made.first = static_cast<std::uint32_t>(flat_.configurations.size());
    made.first_link = flat_.none();
    if (kernel.first < kernel.end) reduce(kernel);
    made.end = static_cast<std::uint32_t>(flat_.configurations.size());
    made.groups = add_links(kernel, made);
    made.end_link = flat_.none();
    flat_.kernels.push_back(made);
  }

  /// Keeps few of the kernel's configurations. The slowest ask for least, so from them on each replaces the
  /// faster ones that it may stand for.
  void reduce(const Flat::Kernel& kernel) {
    const std::size_t first = flat_.configurations.size();
    const double lost = slack(kernel);
    std::vector<bool> gone(kernel.end - kernel.first);
    for (std::uint32_t c = kernel.end; c-- > kernel.first;) {
      if (gone[c - kernel.first]) continue;
      const Flat::Configuration& one = whole_.configurations[c];
      Flat::Configuration kept = one;
      for (std::uint32_t faster = c; faster-- > kernel.first;) {
        const Flat::Configuration& other = whole_.configurations[faster];
        if (one.time > other.time + lost) break;  // so are all before it
        if (!stands_for(one, other)) continue;
        kept.time = other.time;
        gone[faster - kernel.first] = true;
      }
      flat_.configurations.push_back(kept);
    }
    std::stable_sort(flat_.configurations.begin() + static_cast<std::ptrdiff_t>(first),
                     flat_.configurations.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }

  /// Numbers the groups anew that are still asked for. Returns how many they are.
  std::uint32_t add_links(const Flat::Kernel& kernel, const Flat::Kernel& made) {
    std::uint64_t asked = 0;
    for (std::uint32_t c = made.first; c < made.end; ++c) asked |= flat_.configurations[c].mask;
    std::vector<std::uint32_t> number(kernel.groups, kNone);
    std::uint32_t groups = 0;
    for (std::uint32_t g = 0; g < kernel.groups; ++g) {
      if ((asked >> g & 1U) != 0) number[g] = groups++;
    }
    for (std::uint32_t c = made.first; c < made.end; ++c) {
      std::uint64_t mask = 0;
      for (std::uint32_t g = 0; g < kernel.groups; ++g) {
        if ((flat_.configurations[c].mask >> g & 1U) != 0) mask |= std::uint64_t{1} << number[g];
      }
      flat_.configurations[c].mask = mask;
    }
    for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l) {
      if (number[whole_.links[l].group] == kNone) continue;
      kept_[l] = flat_.none();
      links_.push_back(l);
      flat_.links.push_back(whole_.links[l]);
      flat_.links.back().group = number[whole_.links[l].group];
    }
    return groups;
  }

  std::uint32_t slot(const Flat::Edge& edge) const {
    const std::uint32_t link = edge.slot < whole_.none() ? kept_[edge.slot] : kNone;
    return link == kNone ? flat_.none() : link;
  }

  /// Returns whether no configuration asks for the tensor and it can leave fast memory at no cost.
  bool is_idle(const Flat::Tensor& tensor) {
    least_.assign(tensor.nodes, kImpossible);
    least_[0] = 0;
    for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
      const Flat::Edge& edge = whole_.edges[e];
      if (slot(edge) != flat_.none()) return false;
      const double cost = whole_.time(edge) + static_cast<double>(edge.end - edge.first);
      least_[edge.to] = std::min(least_[edge.to], least_[edge.from] + cost);
    }
    return least_[tensor.nodes - 1] == 0;
  }

  void add_tensor(const Flat::Tensor& tensor) {
    Flat::Tensor made = tensor;
    made.first = static_cast<std::uint32_t>(flat_.edges.size());
    const auto place = static_cast<std::uint32_t>(flat_.tensors.size());
    count_degrees(tensor);
    for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
      Flat::Edge edge = whole_.edges[e];
      const Flat::Hidden& hidden = whole_.hidden[e];
      edge.slot = slot(edge);
      if (edge.slot != flat_.none()) flat_.links[edge.slot].tensor = place;
      if (append(edge, hidden)) {
        edges_[e] = into_[edge.to];
        continue;
      }
      edges_[e] = into_[edge.to] = static_cast<std::uint32_t>(flat_.edges.size());
      flat_.edges.push_back(edge);
      flat_.hidden.push_back(hidden);
    }
    made.end = static_cast<std::uint32_t>(flat_.edges.size());
    flat_.most_nodes = std::max(flat_.most_nodes, made.nodes);
    flat_.tensors.push_back(made);
  }

  void count_degrees(const Flat::Tensor& tensor) {
    in_.assign(tensor.nodes, 0);
    out_.assign(tensor.nodes, 0);
    into_.assign(tensor.nodes, kNone);
    for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
      ++in_[whole_.edges[e].to];
      ++out_[whole_.edges[e].from];
    }
  }

  /// Appends the edge to the one before it, where both are the only ones at their common node and can be one.
  /// Returns whether it did.
  bool append(const Flat::Edge& edge, const Flat::Hidden& hidden) {
    if (in_[edge.from] != 1 || out_[edge.from] != 1) return false;
    Flat::Edge& before = flat_.edges[into_[edge.from]];
    const auto none = static_cast<std::uint32_t>(whole_.kernels.size());
    if (before.slot != flat_.none() && edge.slot != flat_.none()) return false;
    if (before.beside != none && edge.beside != none) return false;
    const bool either = before.first < before.end && edge.first < edge.end;
    if (either && before.end != edge.first) return false;
    if (edge.first < edge.end) {
      before.first = either ? before.first : edge.first;
      before.end = edge.end;
    }
    before.slot = std::min(before.slot, edge.slot);
    if (before.beside == none) before.beside = edge.beside;
    before.wait += edge.wait;
    flat_.hidden[into_[edge.from]].share += hidden.share;
    flat_.hidden[into_[edge.from]].slower += hidden.slower;
    before.to = edge.to;
    into_[edge.to] = into_[edge.from];
    return true;
  }

  const Flat& whole_;
  Flat& flat_;
  std::vector<std::uint32_t>&links_, &tensors_, &edges_;
  std::vector<std::uint32_t> kept_;  ///< by link of the whole problem: which it is here; kNone: none
  double share_;
  double mean_ = 0;  ///< of the kernels' least times
  std::vector<double> least_;
  std::vector<std::uint32_t> in_, out_, into_;  ///< by node of a tensor; the last edge that leads there
};

}  // namespace

Reduction::Reduction(const Flat& whole, double share) { Reducing(whole, *this, share).run(); }

void Reduction::widen(const Multipliers& multipliers, const Cuts& cuts, Multipliers& whole) const {
  // Without cuts no configuration is charged for, and in a large problem the array would touch memory for
  // nothing.
  std::vector<double> charges(flat.edges.size()),
      less(multipliers.cut.empty() ? 0 : flat.configurations.size());
  for (std::size_t i = 0; i < multipliers.cut.size(); ++i)
    cuts.charge(cuts.all()[i], multipliers.cut[i], charges, less);
  whole.charge.resize(edges.size());
  for (std::size_t e = 0; e < edges.size(); ++e) whole.charge[e] = edges[e] == kNone ? 0 : charges[edges[e]];
  whole.memory = multipliers.memory;
  whole.overlap = multipliers.overlap;
  whole.haste = multipliers.haste;
  std::fill(whole.link.begin(), whole.link.end(), 0.0);
  for (std::size_t l = 0; l < links.size(); ++l) whole.link[links[l]] = multipliers.link[l];
}

Multipliers Reduction::narrow(const Multipliers& whole) const {
  Multipliers made(flat);
  made.memory = whole.memory;
  made.overlap = whole.overlap;
  made.haste = whole.haste;
  for (std::size_t l = 0; l < links.size(); ++l) made.link[l] = whole.link[links[l]];
  return made;
}

}  // namespace terrace::autotm
