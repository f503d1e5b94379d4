// SPDX-License-Identifier: Apache-2.0
// Paths through a network that nobody knew of until training met them.
#include <filesystem>
#include <fstream>

#include "exec/planned.hpp"
#include "terrace/planner.hpp"

namespace terrace {
namespace {
using namespace literals;

Program program_of(Route route) {
  return compile(with_state_of(routed(route), routed(Route::helped)), 1).value();
}

/// Compiling takes longer than the tests do.
const Program& whole() {
  static const Program program = program_of(Route::helped);
  return program;
}

VerifiedPlan plan_by(std::string_view planner, const Program& program, const Machine& machine,
                     const Profile& profile, const std::vector<Bytes>& budget) {
  Plan plan = make_plan(planner, {program.graph, machine, profile, budget}).value();
  plan.budget = budget;  // all that is open
  return verify(program.graph, machine, std::move(plan)).value();
}

/// Starts with all of the network, in so many tenths of its peak.
Trainer start(const SlowTier& slow, std::uint64_t tenths, TrainerOptions options = {}) {
  options.seed = 1;
  const std::vector<Bytes> budget{round_up(whole().peak * tenths / 10, 4_KiB), 4_MiB};
  const Profile profile = estimate(whole().graph, slow.machine);
  const VerifiedPlan plan = plan_by("prefetch", whole(), slow.machine, profile, budget);
  return Trainer::start(whole(), plan, slow.machine, options).value();
}

/// From here on that path is trained.
void meet(Trainer& trainer, Route route, const Machine& machine, const TemporaryFolder& folder) {
  const Program program = program_of(route);
  const Profile profile = trainer.measure(program, machine, folder.path()).value();
  EXPECT_TRUE(profile.is_measured());
  const VerifiedPlan plan = plan_by("prefetch", program, machine, profile, trainer.budget());
  trainer.use_graph(trainer.add_graph(program, plan, machine).value());
}

void expect_only_profiles(const TemporaryFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_TRUE(entry.path().filename().string().starts_with("profiles.sqlite")) << entry.path();
}

TEST(Paths, AreProfiledPlannedAndTrainedWhenTheyAreMetWithTheSameBits) {
  const TemporaryFolder folder, spill;
  for (const SlowTier& slow : slow_tiers(spill)) {
    for (const std::uint64_t tenths : {7, 20}) {
      SCOPED_TRACE(slow.name + " " + std::to_string(tenths));
      Trainer trainer = start(slow, tenths), reference = Trainer::start(whole(), {.seed = 1}).value();
      std::uint64_t at = 0;
      const auto expect_same_step = [&] {
        EXPECT_EQ(step(trainer, at), step(reference, at)) << at;
        ++at;
        EXPECT_EQ(trainer.steps_done(), at);
      };
      expect_same_step();
      expect_same_step();
      for (const Route route : {Route::short_cut, Route::plain}) {
        meet(trainer, route, slow.machine, folder);
        reference.use_graph(reference.add_graph(program_of(route)).value());
        expect_same_step();
        expect_same_step();
      }
      for (const std::size_t number : {0, 1, 0, 2, 1}) {
        for (Trainer* each : {&trainer, &reference}) each->use_graph(number);
        expect_same_step();
      }
      expect_same_state(trainer, reference);
      expect_only_profiles(folder);
    }
  }
}

TEST(Paths, LeaveAloneWhatTheySkip) {
  const TemporaryFolder folder;
  const SlowTier slow = fake_blocks();
  Trainer planned = start(slow, 7), unlimited = Trainer::start(whole(), {.seed = 1}).value();
  for (Trainer* each : {&planned, &unlimited}) step(*each, 0);
  meet(planned, Route::short_cut, slow.machine, folder);
  unlimited.use_graph(unlimited.add_graph(program_of(Route::short_cut)).value());
  for (Trainer* each : {&planned, &unlimited}) {
    const auto skipped = each->read("block.in.weight"), used = each->read("stem.weight");
    step(*each, 1);
    EXPECT_TRUE(same_bits(each->read("block.in.weight"), skipped));
    EXPECT_FALSE(same_bits(each->read("stem.weight"), used));
  }
}

/// Shows the memory of the fastest tier, and counts tensors that are put aside in a file.
struct Watched {
  Tier* fast = nullptr;
  int put_aside = 0;
  TrainerOptions options() {
    return {.open =
                [this](const TierSpec& spec) {
                  auto opened = open_tier(spec);
                  if (opened && spec.kind == TierKind::dram) fast = opened->get();
                  return opened;
                },
            .before_each_kept = [this] { ++put_aside; }};
  }
  std::vector<std::byte> contents() const {
    return {fast->memory(), fast->memory() + fast->description().capacity.count};
  }
};

TEST(Paths, PutTheStateAsideWhereItIsInTheWayOfMeasuring) {
  const SlowTier slow = fake_blocks();
  const Program program = program_of(Route::short_cut);
  for (const std::uint64_t tenths : {7, 20}) {
    SCOPED_TRACE(tenths);
    const TemporaryFolder folder;
    Watched watched;
    Trainer trainer = start(slow, tenths, watched.options());
    step(trainer, 0);
    const auto state = state_of(trainer);
    ASSERT_TRUE(trainer.measure(program, slow.machine, folder.path()));
    EXPECT_GT(watched.put_aside, 0);
    EXPECT_FALSE(trainer.failed());
    EXPECT_TRUE(state_of(trainer) == state);
    expect_only_profiles(folder);
  }
}

/// Nothing lies in fast memory between the steps of such a plan.
TEST(Paths, AreMeasuredInTheMemoryThatTrainingHas) {
  const TemporaryFolder folder;
  Watched watched;
  const SlowTier slow = fake_blocks();
  TrainerOptions options = watched.options();
  Trainer trainer = Trainer::start(whole(), plan_for(whole(), slow), slow.machine, options).value();
  const auto before = watched.contents();
  ASSERT_TRUE(trainer.measure(program_of(Route::short_cut), slow.machine, folder.path()));
  EXPECT_FALSE(watched.contents() == before) << "kernels were run there";
  EXPECT_EQ(watched.put_aside, 0);
}

TEST(Paths, AreNotMeasuredAgainWhereTheirKernelsAreKnown) {
  const TemporaryFolder folder;
  const SlowTier slow = fake_blocks();
  const Program program = program_of(Route::plain);
  Watched watched;
  Trainer trainer = start(slow, 20, watched.options());
  const Profile first = trainer.measure(program, slow.machine, folder.path()).value();
  const auto before = watched.contents();
  const int put_aside = watched.put_aside;
  EXPECT_TRUE(trainer.measure(program, slow.machine, folder.path()).value() == first);
  EXPECT_TRUE(watched.contents() == before);
  EXPECT_EQ(watched.put_aside, put_aside);
}

TEST(Paths, ThatCannotBeMeasuredLoseNothing) {
  const TemporaryFolder folder;
  const SlowTier slow = fake_blocks();
  Trainer trainer = start(slow, 20), reference = Trainer::start(whole(), {.seed = 1}).value();
  EXPECT_EQ(step(trainer, 0), step(reference, 0));
  std::ofstream(folder / "file") << "no folder";
  EXPECT_FALSE(trainer.measure(program_of(Route::plain), slow.machine, folder / "file"));
  EXPECT_FALSE(trainer.failed());
  const Program other = compile(routed(Route::plain), 2).value();
  const auto refused = trainer.measure(other, slow.machine, folder.path());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("2 threads and training has 1"), std::string::npos);
  Machine three = slow.machine;
  three.tiers.push_back(three.tiers[1]);
  EXPECT_FALSE(trainer.measure(program_of(Route::plain), three, folder.path()));
  EXPECT_EQ(step(trainer, 1), step(reference, 1));
  expect_same_state(trainer, reference);
}

TEST(Paths, WithAStateOfTheirOwnAreRefused) {
  Trainer trainer = Trainer::start(compile(routed(Route::plain), 1).value(), {}).value();
  const auto more = trainer.add_graph(compile(routed(Route::helped), 1).value());
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message.find("helper.weight of routed is not in the graph that is trained"),
            std::string::npos)
      << more.error().message;
  const auto less = trainer.add_graph(compile(routed(Route::short_cut), 1).value());
  ASSERT_FALSE(less);
  EXPECT_NE(less.error().message.find("block.in.weight of the graph that is trained is not in routed"),
            std::string::npos)
      << less.error().message;
}

/// What a planner says for which there is no plan in a part of the peak; empty: it has one.
std::string_view refusal_of(std::string_view planner, const SlowTier& slow) {
  if (planner == "all-fast") return "everything in fast memory takes ";
  if (planner == "vdnn") return "without what convolutions read ";  // there is none to leave
  if (slow.machine.tiers[1].addressable) return "";
  // These move nothing.
  if (planner == "all-slow") return " has no slower tier that kernels can use in place: ";
  if (planner == "first-touch") return "the tiers that kernels can use in place are full: ";
  if (planner == "autotm-static") return ", a planner that moves tensors may do";
  return "";
}

TEST(Paths, EveryPlannerKeepsWhatTheySkip) {
  const Program program = program_of(Route::short_cut);
  Trainer reference = Trainer::start(program, {.seed = 1}).value();
  std::vector<float> losses;
  for (std::uint64_t i = 0; i < 2; ++i) losses.push_back(step(reference, i));
  for (const SlowTier& slow : {fake_memory(), fake_blocks()}) {
    const std::vector<Bytes> budget{round_up(program.peak * 9 / 10, 4_KiB), 4_MiB};
    const Profile profile = estimate(program.graph, slow.machine);
    for (const PlannerInfo& planner : planners()) {
      SCOPED_TRACE(std::string(planner.name) + " over " + slow.name);
      const auto plan = make_plan(planner.name, {program.graph, slow.machine, profile, budget});
      const std::string_view refusal = refusal_of(planner.name, slow);
      EXPECT_EQ(plan.ok(), refusal.empty()) << (plan ? "it plans" : plan.error().message);
      if (!plan) {
        EXPECT_NE(plan.error().message.find(refusal), std::string::npos) << plan.error().message;
        continue;
      }
      const VerifiedPlan verified = verify(program.graph, slow.machine, *plan).value();
      Trainer trainer = Trainer::start(program, verified, slow.machine, {.seed = 1}).value();
      for (std::uint64_t i = 0; i < 2; ++i) EXPECT_EQ(step(trainer, i), losses[i]);
      expect_same_state(trainer, reference);
    }
  }
}

}  // namespace
}  // namespace terrace
