// The inequalities of the overlap, against all sets of moves and all solutions of very small problems.
#include "planners/autotm/solver/cuts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "autotm_fast/random_instance.hpp"
#include "planners/autotm/solver/reduction.hpp"

namespace terrace::autotm {
namespace {

constexpr double kRounding = 1e-12;

double fraction(SplitMix& random) { return static_cast<double>(random.below(1001)) / 1000; }

struct Mixture {
  std::vector<Part> configurations, moves;
};

/// Some are 0 or 1, as many are in a relaxation's solution.
double odd_share(SplitMix& random) {
  const std::uint64_t kind = random.below(10);
  return kind == 0 ? 0 : kind == 1 ? 1 : fraction(random);
}

Mixture random_mixture(SplitMix& random) {
  Mixture made;
  double sum = 0;
  for (std::uint64_t c = 1 + random.below(4); c > 0; --c) {
    made.configurations.push_back({0.01 + fraction(random), 0.01 + fraction(random)});
    sum += made.configurations.back().share;
  }
  for (Part& one : made.configurations) one.share /= sum;
  for (std::uint64_t i = random.below(6); i > 0; --i)
    made.moves.push_back({0.01 + fraction(random), odd_share(random)});
  return made;
}

/// Each move beside each configuration for as much of it as chance says, by points on a line of length 1.
double mean_of_a_coupling(const Mixture& mixture, SplitMix& random) {
  constexpr int kPoints = 1000;
  std::vector<double> own, beside(kPoints);
  for (const Part& one : mixture.configurations)
    own.insert(own.end(), static_cast<std::size_t>(one.share * kPoints + 0.5), one.time);
  own.resize(kPoints, mixture.configurations.back().time);
  std::vector<int> order(kPoints);
  std::iota(order.begin(), order.end(), 0);
  for (const Part& move : mixture.moves) {
    for (int i = kPoints; i > 1 && random.below(2) == 0; --i)
      std::swap(order[i - 1], order[random.below(static_cast<std::uint64_t>(i))]);
    for (int i = 0; i < move.share * kPoints; ++i) beside[order[i]] += move.time;
  }
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) sum += std::max(own[i], beside[i]);
  return sum / kPoints;
}

TEST(Envelope, IsBelowEveryMixtureWithTheseShares) {
  SplitMix random(1);
  Envelope envelope;
  for (int i = 0; i < 2000; ++i) {
    const Mixture mixture = random_mixture(random);
    const double least = envelope.solve(mixture.configurations, mixture.moves);
    for (int coupling = 0; coupling < 5; ++coupling) {
      // The points are a thousandth apart.
      EXPECT_LE(least, mean_of_a_coupling(mixture, random) + 0.02) << "mixture " << i;
    }
  }
}

/// With equal moves and shares it is known: as many as their mean, or one more.
TEST(Envelope, IsPreciseForEqualMoves) {
  SplitMix random(2);
  Envelope envelope;
  for (int i = 0; i < 500; ++i) {
    const std::size_t moves = 1 + random.below(6);
    const Part move{0.05 + fraction(random), fraction(random)}, kernel{0.05 + fraction(random), 1};
    const double mean = static_cast<double>(moves) * move.share, fewer = std::floor(mean);
    const auto time = [&](double taken) { return std::max(kernel.time, taken * move.time); };
    const double expected = (fewer + 1 - mean) * time(fewer) + (mean - fewer) * time(fewer + 1);
    EXPECT_NEAR(envelope.solve(std::vector{kernel}, std::vector(moves, move)), expected, 1e-9);
  }
}

TEST(Envelope, SeesThatHalvesOfMovesDoNotFitTogether) {
  Envelope envelope;
  const std::vector<Part> kernel{{1, 1}};
  // One or two of three are taken, with equal shares: one is hidden, two take 1.2.
  EXPECT_NEAR(envelope.solve(kernel, std::vector<Part>{{0.6, 0.5}, {0.6, 0.5}, {0.6, 0.5}}), 1.1, 1e-9);
  // Half of a move that is too long.
  EXPECT_NEAR(envelope.solve(kernel, std::vector<Part>{{1.4, 0.5}}), 1.2, 1e-9);
  // A move is beside the slower configuration alone.
  const std::vector<Part> either{{1, 0.5}, {2, 0.5}};
  EXPECT_NEAR(envelope.solve(either, std::vector<Part>{{1.5, 0.5}}), 1.5, 1e-9);
  EXPECT_NEAR(envelope.solve(either, std::vector<Part>{{1.5, 0.6}}), 1.55, 1e-9);
}

/// Every path of one tensor after the other, with the shares of edges that are taken.
class EverySolution {
 public:
  EverySolution(const Flat& flat, const Cuts& cuts) : flat_(flat), cuts_(cuts), edges_(flat.edges.size()) {}

  void check() { choose(0, 0); }
  std::uint64_t checked() const { return checked_; }

 private:
  void choose(std::size_t tensor, std::uint32_t node) {
    if (tensor == flat_.tensors.size()) return check_kernels();
    if (node + 1 == flat_.tensors[tensor].nodes) return choose(tensor + 1, 0);
    for (std::uint32_t e = flat_.tensors[tensor].first; e < flat_.tensors[tensor].end; ++e) {
      if (flat_.edges[e].from != node) continue;
      edges_[e] = 1;
      choose(tensor, flat_.edges[e].to);
      edges_[e] = 0;
    }
  }

  void check_kernels() {
    ++checked_;
    for (const Cuts::Cut& cut : cuts_.all()) {
      double moves = 0;
      for (std::uint32_t e = 0; e < edges_.size(); ++e) {
        if (flat_.edges[e].beside == cut.kernel) moves += edges_[e] * flat_.hidden[e].share;
      }
      const Flat::Kernel& kernel = flat_.kernels[cut.kernel];
      for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
        std::vector<double> configurations(flat_.configurations.size());
        configurations[c] = 1;
        const double time = flat_.configurations[c].time;
        EXPECT_LE(time + cuts_.violation(cut, edges_, configurations), std::max(time, moves) + kRounding);
      }
    }
  }

  const Flat& flat_;
  const Cuts& cuts_;
  std::vector<double> edges_;
  std::uint64_t checked_ = 0;
};

/// What some odd shares break. How many.
std::size_t find_some(const Flat& flat, Cuts& cuts, SplitMix& random) {
  std::size_t found = 0;
  for (int i = 0; i < 4; ++i) {
    std::vector<double> edges, configurations;
    for (std::size_t e = 0; e < flat.edges.size(); ++e) edges.push_back(odd_share(random));
    for (std::size_t c = 0; c < flat.configurations.size(); ++c)
      configurations.push_back(0.01 + fraction(random));
    found += cuts.find(edges, configurations);
  }
  return found;
}

/// Of small problems all of whose kernels have configurations.
template <class Work>
void for_each_flat(Work work) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    const Instance instance = RandomInstance(seed, 2 + static_cast<std::uint32_t>(seed % 2)).make();
    if (BruteForce(instance).combinations() > 2000) continue;
    const Flat flat = flatten(instance);
    if (std::any_of(flat.kernels.begin(), flat.kernels.end(), [](auto& one) { return one.first == one.end; }))
      continue;
    SplitMix random(seed);
    work(flat, random);
  }
}

TEST(Cuts, HoldForEverySolution) {
  std::uint64_t cuts_found = 0, several = 0;
  for_each_flat([&](const Flat& flat, SplitMix& random) {
    Cuts cuts(flat);
    cuts_found += find_some(flat, cuts, random);
    for (const Cuts::Cut& cut : cuts.all()) several += cut.end - cut.first > 1;
    EverySolution(flat, cuts).check();
  });
  EXPECT_GT(cuts_found, 100U);
  EXPECT_GT(several, cuts_found / 4);
}

TEST(Cuts, HoldForTheWholeProblemThatAdoptsThem) {
  constexpr double kMuch = 0.5;
  std::uint64_t adopted = 0, charging = 0;
  for_each_flat([&](const Flat& flat, SplitMix& random) {
    const Reduction reduction(flat, kMuch);
    Cuts coarse(reduction.flat), cuts(flat);
    find_some(reduction.flat, coarse, random);
    cuts.adopt(coarse, reduction.edges);
    ASSERT_EQ(cuts.size(), coarse.size());
    for (const Cuts::Cut& cut : cuts.all()) charging += cut.end > cut.first;
    adopted += cuts.size();
    EverySolution(flat, cuts).check();
  });
  EXPECT_GT(adopted, 100U);
  EXPECT_GT(charging, adopted * 9 / 10);
}

}  // namespace
}  // namespace terrace::autotm
