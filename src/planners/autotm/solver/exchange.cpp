// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/exchange.hpp"

#include <algorithm>

namespace terrace::autotm {
namespace {

constexpr std::size_t kMostTensors = 12;
/// How many neighbours are looked at for each that is taken.
constexpr std::uint64_t kLooks = 8;
constexpr double kLeastDoubt = 0.02;
/// How many kernels a region has, and how many exchanges it gets for each: more where moves compete.
constexpr std::uint64_t kLeastKernels = 4, kMostKernels = 40, kAttemptsPerKernel = 2, kAttemptsBeside = 6;

double fraction(SplitMix& random) { return static_cast<double>(random.below(1000)) / 1000; }

}  // namespace

Exchange::Exchange(const Flat& flat, const Placement& least)
    : flat_(flat),
      overlaps_(flat.overlaps()),
      meeting_(flat.kernels.size()),
      in_region_(flat.tensors.size()),
      noisy_(flat.edges.size()) {
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

void Exchange::set_fractionality(std::span<const double> fractionality) {
  fractional_.clear();
  for (std::uint32_t t = 0; t < lives_.size(); ++t) {
    if (fractionality[t] >= kLeastDoubt && lives_[t].first < lives_[t].end) fractional_.push_back(t);
  }
  list_meetings();
}

std::uint32_t Exchange::meeting(const Flat::Edge& edge) const {
  if (overlaps_) return flat_.is_beside(edge) ? edge.beside : kNone;
  return edge.slot < flat_.none() ? flat_.links[edge.slot].kernel : kNone;
}

void Exchange::list_meetings() {
  for (auto& tensors : meeting_) tensors.clear();
  for (const std::uint32_t t : fractional_) {
    for (std::uint32_t e = flat_.tensors[t].first; e < flat_.tensors[t].end; ++e) {
      const std::uint32_t k = meeting(flat_.edges[e]);
      if (k == kNone) continue;
      auto& tensors = meeting_[k];
      if (tensors.empty() || tensors.back() != t) tensors.push_back(t);
    }
  }
  kernels_.clear();
  for (std::uint32_t k = 0; k < meeting_.size(); ++k) {
    if (meeting_[k].size() > 1) kernels_.push_back(k);
  }
}

void Exchange::run(Placement& placement, std::uint64_t attempts, SplitMix& random) {
  if (fractional_.empty()) return;
  for (std::uint64_t i = 0; i < attempts; ++i) {
    gather(random);
    attempt(placement, random);
  }
}

void Exchange::renew(Placement& placement, std::span<const double> shares, std::uint64_t regions,
                     SplitMix& random) {
  if (kernels_.empty()) return;
  for (std::uint64_t i = 0; i < regions; ++i) renew_region(placement, shares, random);
}

void Exchange::gather(SplitMix& random) {
  if (kernels_.empty() || random.below(2) == 0) return gather_of_moment(random);
  gather_meeting(kernels_[random.below(kernels_.size())], random);
}

/// Gathers tensors that may all be in fast memory at one moment of the first one's life.
void Exchange::gather_of_moment(SplitMix& random) {
  set_.assign(1, fractional_[random.below(fractional_.size())]);
  const Life& life = lives_[set_[0]];
  const auto moment = static_cast<std::uint32_t>(life.first + random.below(life.end - life.first));
  const std::size_t wanted = 2 + random.below(kMostTensors - 1);
  for (std::uint64_t look = 0; look < kLooks * wanted && set_.size() < wanted; ++look) {
    const std::uint32_t t = fractional_[random.below(fractional_.size())];
    if (moment < lives_[t].first || moment >= lives_[t].end) continue;
    if (std::find(set_.begin(), set_.end(), t) == set_.end()) set_.push_back(t);
  }
}

void Exchange::gather_meeting(std::uint32_t kernel, SplitMix& random) {
  std::vector<std::uint32_t>& all = meeting_[kernel];
  const std::size_t wanted = std::min<std::size_t>(all.size(), 2 + random.below(kMostTensors - 1));
  for (std::size_t i = 0; i < wanted; ++i) std::swap(all[i], all[i + random.below(all.size() - i)]);
  set_.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted));
}

/// Gathers all tensors that meet at these kernels.
void Exchange::gather_region(std::uint32_t first, std::uint32_t end) {
  set_.clear();
  for (std::uint32_t i = first; i < end; ++i)
    set_.insert(set_.end(), meeting_[kernels_[i]].begin(), meeting_[kernels_[i]].end());
  std::sort(set_.begin(), set_.end());
  set_.erase(std::unique(set_.begin(), set_.end()), set_.end());
}

bool Exchange::attempt(Placement& placement, SplitMix& random) {
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

/// Remembers the paths of the set's tensors, except those that are remembered already.
void Exchange::remember(const Placement& placement) {
  for (const std::uint32_t t : set_) {
    if (in_region_[t]) continue;
    in_region_[t] = true;
    region_.push_back(t);
    region_before_.push_back(placement.path(t));
  }
}

bool Exchange::renew_region(Placement& placement, std::span<const double> shares, SplitMix& random) {
  const double time = placement.time();
  const std::uint64_t wanted = kLeastKernels + random.below(kMostKernels - kLeastKernels);
  const auto first = static_cast<std::uint32_t>(random.below(kernels_.size()));
  const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(kernels_.size(), first + wanted));
  region_.clear();
  region_before_.clear();
  gather_region(first, end);
  remember(placement);
  little_.clear();
  for (const std::uint32_t t : set_) little_.push_back(least_[t]);
  bool fits = placement.exchange(set_, little_);
  if (fits) {
    const double noise = fraction(random);
    for (std::size_t i = set_.size(); i > 1; --i) std::swap(set_[i - 1], set_[random.below(i)]);
    for (const std::uint32_t t : set_) {
      for (std::uint32_t e = flat_.tensors[t].first; e < flat_.tensors[t].end; ++e)
        noisy_[e] = shares[e] + noise * fraction(random);
      placement.follow(t, noisy_);
    }
    for (const double trusted : {1.0, 0.0}) {
      placement.set_trust({trusted, 0, 0, 0});
      for (const std::uint32_t t : set_) placement.choose(t);
    }
    const std::uint64_t attempts = (overlaps_ ? kAttemptsBeside : kAttemptsPerKernel) * (end - first);
    for (std::uint64_t i = 0; i < attempts; ++i) {
      gather_meeting(kernels_[first + random.below(end - first)], random);
      remember(placement);
      attempt(placement, random);
    }
  }
  for (const std::uint32_t t : region_) in_region_[t] = false;
  if (fits && placement.time() <= time) return true;
  placement.set_trust({});
  placement.exchange(region_, region_before_);
  return false;
}

}  // namespace terrace::autotm
