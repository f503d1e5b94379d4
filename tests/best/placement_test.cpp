// SPDX-License-Identifier: Apache-2.0
// Placements that tensors choose one after the other, and improve by exchanging their places.
#include <gtest/gtest.h>

#include <algorithm>

#include "planners/best/placement.hpp"
#include "support/random_graph.hpp"
#include "support/random_machine.hpp"
#include "terrace/lifetimes.hpp"

namespace terrace::best {
namespace {

/// A placement's own books are not asked: what its paths take is counted anew.
struct Counted {
  std::vector<double>& used;
  double bytes;
  void hold(std::uint32_t first, std::uint32_t end) const {
    for (std::uint32_t m = first; m < end; ++m) used[m] += bytes;
  }
  void copy_out(const bounds::When& when) const { EXPECT_TRUE(when.beside >= 0 && when.beside <= 1); }
  void copy_in(const bounds::When& when) const { EXPECT_TRUE(when.beside >= 0 && when.beside <= 1); }
  void recompute(std::uint32_t, double) const { ADD_FAILURE() << "a placement makes nothing again"; }
  void slow(std::uint32_t) const {}
};

double most_used(const bounds::Problem& problem, const Placement& placement) {
  std::vector<double> used(problem.moments() + 1);
  for (std::size_t t = 0; t < problem.tensors.size(); ++t) {
    const Counted counted{used, problem.tensors[t].bytes};
    placement.is_pinned(t) ? counted.hold(0, problem.moments())
                           : bounds::follow(problem, problem.tensors[t], placement.path(t), counted);
  }
  return *std::max_element(used.begin(), used.end());
}

std::vector<CopyTime> copy_times(const bounds::Problem& problem) {
  std::vector<CopyTime> times;
  for (const bounds::BoundTensor& tensor : problem.tensors)
    times.push_back({tensor.bytes * problem.out.busy, tensor.bytes * problem.in.busy});
  return times;
}

TEST(Placement, GetsCheaperByExchangesAndStillFits) {
  int cheaper = 0, compared = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomGraphOptions shape;
    shape.kernels = 20;
    const Graph graph = random_graph(shape, seed);
    Machine machine = random_machine(seed);
    for (MachineTier& tier : machine.tiers) tier.addressable = true;  // so that everything fits somewhere
    const Profile profile = estimate(graph, machine);
    std::vector<Bytes> budget;
    for (const MachineTier& tier : machine.tiers) budget.push_back(tier.capacity);
    budget[0] = round_up(Lifetimes(graph).peak_bytes() * 3 / 10, machine.tiers[0].granularity);
    const PlanRequest request{graph, machine, profile, budget};
    const bounds::Problem problem(request, KernelClock(graph, machine, profile));
    if (!problem.linked) continue;
    ++compared;
    const auto times = copy_times(problem);
    Placement placement(problem, times, problem.capacity, Copies::hidden);
    SplitMix random(seed);
    placement.sweep(bounds::Multipliers(problem), {0, 0}, Order::largest_first, random);
    const double before = placement.cost();
    placement.exchange(300, random);
    EXPECT_LE(placement.cost(), before * (1 + 1e-9)) << seed;
    EXPECT_LE(most_used(problem, placement), problem.capacity) << seed;
    cheaper += placement.cost() < before * (1 - 1e-6) ? 1 : 0;
  }
  EXPECT_GT(cheaper, compared / 4) << "of " << compared;
}

}  // namespace
}  // namespace terrace::best
