#include "planners/autotm/exchange.hpp"

#include <algorithm>

namespace terrace::autotm {
namespace {

constexpr std::size_t kMostTensors = 12;
/// So many neighbours are looked at for each that is taken.
constexpr std::uint64_t kLooks = 8;
constexpr double kLeastDoubt = 0.02;

}  // namespace

Exchange::Exchange(const Flat& flat, const Placement& least) {
  for (std::uint32_t t = 0; t < flat.tensors.size(); ++t) {
    Life life{flat.moments, 0};
    for (std::uint32_t e = flat.tensors[t].first; e < flat.tensors[t].end; ++e) {
      const Flat::Edge& edge = flat.edges[e];
      if (edge.first >= edge.end || flat.pool(edge.first) != 0) continue;
      life.first = std::min(life.first, edge.first);
      life.end = std::max(life.end, edge.end);
    }
    lives_.push_back(life);
    least_.push_back(least.path(t));
  }
}

void Exchange::set_doubts(std::span<const double> doubts) {
  doubtful_.clear();
  for (std::uint32_t t = 0; t < lives_.size(); ++t) {
    if (doubts[t] >= kLeastDoubt && lives_[t].first < lives_[t].end) doubtful_.push_back(t);
  }
}

void Exchange::run(Placement& placement, std::uint64_t attempts, SplitMix& random) {
  if (doubtful_.empty()) return;
  for (std::uint64_t i = 0; i < attempts; ++i) attempt(placement, random);
}

/// Tensors that may all be in fast memory at one moment of the first one's life.
void Exchange::gather(SplitMix& random) {
  set_.assign(1, doubtful_[random.below(doubtful_.size())]);
  const Life& life = lives_[set_[0]];
  const auto moment = static_cast<std::uint32_t>(life.first + random.below(life.end - life.first));
  const std::size_t wanted = 2 + random.below(kMostTensors - 1);
  for (std::uint64_t look = 0; look < kLooks * wanted && set_.size() < wanted; ++look) {
    const std::uint32_t t = doubtful_[random.below(doubtful_.size())];
    if (moment < lives_[t].first || moment >= lives_[t].end) continue;
    if (std::find(set_.begin(), set_.end(), t) == set_.end()) set_.push_back(t);
  }
}

bool Exchange::attempt(Placement& placement, SplitMix& random) {
  gather(random);
  const double time = placement.time();
  before_.clear();
  little_.clear();
  for (const std::uint32_t t : set_) {
    before_.push_back(placement.path(t));
    little_.push_back(least_[t]);
  }
  const double memory = static_cast<double>(random.below(12)) / 10;
  if (placement.exchange(set_, little_)) {
    for (const double trusted : {memory, 0.0}) {
      placement.set_trust({trusted, 0, 0, 0});
      for (const std::uint32_t t : set_) placement.choose(t);
    }
    if (placement.time() <= time) return true;
  }
  placement.set_trust({});
  placement.exchange(set_, before_);
  return false;
}

}  // namespace terrace::autotm
