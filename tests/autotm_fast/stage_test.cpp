#include "planners/autotm/solver/stage.hpp"

#include <gtest/gtest.h>

#include "random_instance.hpp"

namespace terrace::autotm {
namespace {

constexpr Seconds kLong{1e6};

struct Shown {
  explicit Shown(const Flat& flat)
      : fractionality(flat.tensors.size()), shares(flat.edges.size()), multipliers(flat) {}
  std::vector<double> fractionality, shares;
  Multipliers multipliers;
};

TEST(Stage, GoesOnWithAllThatACoarserOneFound) {
  constexpr double kCoarse = 1, kFine = 1e-6;
  std::uint64_t edges = 0, same = 0, moved = 0, parts = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Flat flat = flatten(RandomInstance(seed).make());
    const auto is_stuck = [](const Flat::Kernel& kernel) { return kernel.first == kernel.end; };
    if (!flat.overlaps() || std::any_of(flat.kernels.begin(), flat.kernels.end(), is_stuck)) continue;
    Team team(1);
    Stage coarse(flat, kCoarse, team);
    coarse.climb(kLong, {});
    for (int i = 0; i < 2; ++i) coarse.balance(30, kLong.count(), {});
    Stage fine(flat, kFine, coarse);
    EXPECT_GE(fine.bound(), coarse.bound());
    Shown before(flat), after(flat);
    coarse.show(before.fractionality, before.shares, before.multipliers);
    fine.show(after.fractionality, after.shares, after.multipliers);
    for (const std::uint32_t t : coarse.tensors()) {
      for (std::uint32_t e = flat.tensors[t].first; e < flat.tensors[t].end; ++e) {
        ++edges;
        same += before.shares[e] == after.shares[e];
        parts += before.shares[e] > 0.01 && before.shares[e] < 0.99;
      }
    }
    const double bound = fine.bound();
    fine.balance(300, kLong.count(), {});
    moved += fine.bound() > bound;
  }
  EXPECT_GT(parts, 100U) << "some shares are no whole paths";
  EXPECT_GT(same, edges * 9 / 10) << "of " << edges;
  EXPECT_GT(moved, 50U) << "steps go on to prove more";
}

}  // namespace
}  // namespace terrace::autotm
