// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "sim/oracle.hpp"
#include "sim/rig.hpp"
#include "support/stress_factor.hpp"

namespace terrace {
namespace {

/// A machine, a graph and a plan in which every transfer is waited for at some time after its start.
class RandomCase {
 public:
  explicit RandomCase(std::uint64_t seed) : random_(seed) {
    make_machine();
    std::vector<double> seconds;
    std::vector<std::uint64_t> bytes;
    for (int i = 0; i < 6; ++i) seconds.push_back(between(0.05, 2));
    for (int i = 0; i < 6; ++i) bytes.push_back(1 + below(200));
    graph = bare_graph(seconds, bytes);
    while (plan.instructions.size() < 20) add_any();
    while (!open_.empty()) wait();
  }

  Machine machine;
  Graph graph;
  Plan plan;

 private:
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  std::uint32_t below(std::uint32_t bound) {
    return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random_);
  }

  void make_machine() {
    machine = two_tiers();
    add_tier(machine);
    machine.links.clear();
    for (std::uint32_t from = 0; from < 3; ++from) {
      for (std::uint32_t to = 0; to < 3; ++to) {
        if (from == to) continue;
        Link link = byte_per_second({from}, {to}, between(0.4, 1), between(0, 0.4));
        link.rates = {{Bytes{10}, {between(20, 60)}}, {Bytes{150}, {between(60, 200)}}};
        link.while_computing = between(0.4, 1);
        machine.links.push_back(link);
      }
    }
  }

  void add_any() {
    const std::uint32_t kind = below(3);
    if (kind == 0) plan.instructions.push_back(run(below(6)));
    if (kind == 1) {
      const Link& link = machine.links[below(6)];
      open_.push_back(tickets_);
      plan.instructions.push_back(copy(below(6), link.from, link.to, tickets_++));
    }
    if (kind == 2 && !open_.empty()) wait();
  }

  void wait() {
    const std::size_t which = below(static_cast<std::uint32_t>(open_.size()));
    plan.instructions.push_back(Wait{open_[which]});
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  std::mt19937_64 random_;
  std::uint32_t tickets_ = 0;
  std::vector<std::uint32_t> open_;
};

template <class Check>
void for_each_case(Check check) {
  for (std::uint64_t seed = 0; seed < 100U * static_cast<unsigned>(stress_factor()); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const RandomCase made(seed);
    const Profile profile = estimate(made.graph, made.machine);
    check(made, profile, simulate(made.graph, made.machine, profile, made.plan));
  }
}

TEST(RandomPlans, AgreeWithSmallFixedTicks) {
  constexpr double kTick = 1e-3;
  for_each_case([](const RandomCase& made, const Profile& profile, const Timeline& timeline) {
    const KernelClock clock(made.graph, made.machine, profile);
    TickingSimulator oracle(made.graph, made.machine, clock, kTick);
    const std::vector<double> ends = oracle.run(made.plan.instructions);
    // Being late carries over from what must end before, stretched by the lowest speed.
    const double tolerance = 3 * kTick * static_cast<double>(ends.size());
    for (std::size_t i = 0; i < ends.size(); ++i) {
      EXPECT_NEAR(timeline.instructions[i].end.count(), ends[i], tolerance) << "instruction " << i;
    }
    EXPECT_NEAR(timeline.step.count(), oracle.now(), tolerance);
  });
}

TEST(RandomPlans, AreNeverFasterThanTheirKernelsOrTheirLinks) {
  for_each_case([](const RandomCase& made, const Profile& profile, const Timeline& timeline) {
    const KernelClock clock(made.graph, made.machine, profile);
    Seconds kernels{0};
    std::vector<Seconds> links(made.machine.links.size());
    for (const Instruction& instruction : made.plan.instructions) {
      if (const auto* run = std::get_if<terrace::Run>(&instruction)) kernels += clock.fast(run->kernel);
      if (const auto* copy = std::get_if<Copy>(&instruction)) {
        const Link* link = made.machine.link(copy->from, copy->to);
        links[static_cast<std::size_t>(link - made.machine.links.data())] +=
            link->time(made.graph[copy->tensors[0]].bytes);
      }
    }
    constexpr double kRounding = 1e-9;
    EXPECT_GE(timeline.step.count(), kernels.count() - kRounding);
    EXPECT_GE(timeline.step.count() - timeline.exposed.count(), kernels.count() - kRounding);
    for (const Seconds busy : links) EXPECT_GE(timeline.step.count(), busy.count() - kRounding);
  });
}

TEST(RandomPlans, TransfersOfALinkNeverOverlap) {
  for_each_case([](const RandomCase& made, const Profile&, const Timeline& timeline) {
    std::map<std::pair<TierId, TierId>, Seconds> ends;
    for (std::size_t i = 0; i < made.plan.instructions.size(); ++i) {
      const auto* copy = std::get_if<Copy>(&made.plan.instructions[i]);
      if (copy == nullptr) continue;
      Seconds& end = ends[{copy->from, copy->to}];
      EXPECT_GE(timeline.instructions[i].begin, end);
      end = timeline.instructions[i].end;
    }
  });
}

TEST(RandomPlans, GiveTheSameTimelineAgain) {
  for_each_case([](const RandomCase& made, const Profile& profile, const Timeline& timeline) {
    const Timeline again = simulate(made.graph, made.machine, profile, made.plan);
    ASSERT_EQ(again.instructions.size(), timeline.instructions.size());
    for (std::size_t i = 0; i < again.instructions.size(); ++i) {
      EXPECT_EQ(again.instructions[i].begin, timeline.instructions[i].begin);
      EXPECT_EQ(again.instructions[i].end, timeline.instructions[i].end);
    }
    EXPECT_EQ(again.step, timeline.step);
  });
}

}  // namespace
}  // namespace terrace
