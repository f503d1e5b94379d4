// Steps in which accesses are counted.
#include <algorithm>

#include "exec/planned.hpp"
#include "terrace/access_profile.hpp"
#include "terrace/operation.hpp"
#include "terrace/planner.hpp"

namespace terrace {
namespace {
using namespace literals;

float counted(Trainer& trainer, std::uint64_t seed) {
  fill_inputs(trainer, seed);
  static_cast<void>(trainer.counted_step().value());
  return trainer.result(0)[0];
}

Trainer start_in_pages(const Graph& graph, unsigned threads) {
  return Trainer::start(aligned(compile(graph, threads).value(), 4_KiB), {.seed = 1, .learning_rate = 0.01F})
      .value();
}

/// Counts the first of two steps of one trainer, and none of the other.
void expect_same_bits(Trainer watched, Trainer plain) {
  EXPECT_EQ(counted(watched, 1), step(plain, 1));
  EXPECT_EQ(step(watched, 2), step(plain, 2));
  expect_same_state(watched, plain);
  EXPECT_EQ(watched.steps_done(), 2U);
}

TEST(CountedStep, GivesTheSameBits) {
  for (const Graph& graph : small_graphs()) {
    SCOPED_TRACE(graph.name);
    expect_same_bits(start_unlimited(graph), start_unlimited(graph));
    expect_same_bits(start_in_pages(graph, 1), start_unlimited(graph));
  }
}

TEST(CountedStep, GivesTheSameBitsWithSeveralThreads) {
  for (const Graph& graph : {small_resnet(), small_gpt()}) {
    SCOPED_TRACE(graph.name);
    expect_same_bits(start_in_pages(graph, 2), start_unlimited(graph, 2));
  }
}

/// Whatever moves bytes in a plan meets no armed page.
TEST(CountedStep, GivesTheSameBitsUnderPlans) {
  const TemporaryFolder folder;
  for (const SlowTier& slow : slow_tiers(folder)) {
    SCOPED_TRACE(slow.name);
    expect_same_bits(start(small_resnet(), slow), start_unlimited(small_resnet()));
  }
}

/// A plan whose transfers go on behind kernels, to and from a disk, which cannot read armed pages.
TEST(CountedStep, GivesTheSameBitsWhereTransfersAndKernelsOverlap) {
  const TemporaryFolder folder;
  const Machine machine = two_tiers("file:" + (folder / "spill") + ":1GiB,buffered", {4096}, {4096}, false);
  const Program program = compile(small_resnet(), 1).value();
  const Profile profile = estimate(program.graph, machine);
  const Bytes fast = round_up(least_budget(program.graph, machine).bytes * 3 / 2, 4_KiB);
  const PlanRequest request{program.graph, machine, profile, {fast, 1_GiB}};
  const auto plan = verify(program.graph, machine, make_plan("prefetch", request).value()).value();
  Trainer watched = Trainer::start(program, plan, machine, {.seed = 1, .learning_rate = 0.01F}).value();
  expect_same_bits(std::move(watched), start_unlimited(small_resnet()));
}

/// x > linear > relu > linear > loss, each operand some pages large and smaller than any cache.
Graph plain_network() {
  Net net("plain");
  const Value x = net.input("x", {64, 96});
  const Value hidden = net.relu(net.linear("a", x, 96));
  net.train(net.binary_cross_entropy(net.linear("b", hidden, 96), 1), {});
  return std::move(net).finish();
}

TEST(CountedStep, MatchesWhatKernelsDo) {
  Trainer trainer = start_in_pages(plain_network(), 1);
  fill_inputs(trainer, 1);
  const KernelAccesses counts = trainer.counted_step().value();
  const Graph& graph = trainer.program().graph;
  ASSERT_EQ(counts.size(), graph.kernels.size());
  for (std::uint32_t k = 0; k < counts.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    SCOPED_TRACE(kernel.name);
    ASSERT_EQ(counts[k].size(), kernel.inputs.size() + kernel.outputs.size() + (kernel.workspace ? 1 : 0));
    for (std::size_t i = 0; i < kernel.inputs.size() + kernel.outputs.size(); ++i) {
      const Accesses assumed = assumed_accesses(graph, {k}, i), one = counts[k][i];
      const Operand& operand =
          i < kernel.inputs.size() ? kernel.inputs[i] : kernel.outputs[i - kernel.inputs.size()];
      EXPECT_EQ(one.pages, (graph[operand.tensor].bytes.count + 4095) / 4096) << "operand " << i;
      // Reading what was just written is not seen, and a kernel may read what it is about to write.
      EXPECT_TRUE(one.reads == 1 || assumed.writes == 1) << "operand " << i << ": " << one.reads;
      EXPECT_EQ(one.writes, assumed.writes) << "operand " << i;
    }
  }
}

TEST(CountedStep, SeesInPlaceKernelsReadAndWrite) {
  Trainer trainer = start_in_pages(plain_network(), 1);
  fill_inputs(trainer, 1);
  const KernelAccesses counts = trainer.counted_step().value();
  const Graph& graph = trainer.program().graph;
  std::size_t seen = 0;
  for (std::uint32_t k = 0; k < counts.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    if (operation_of(kernel) != Operation::sgd) continue;
    ++seen;
    EXPECT_EQ(counts[k][0].reads, 1) << "the weight is read";
    EXPECT_EQ(counts[k][0].writes, 1) << "and written";
    EXPECT_EQ(counts[k][1].reads, 1) << "the gradient is read";
    EXPECT_EQ(counts[k][1].writes, 0);
    EXPECT_EQ(counts[k][kernel.inputs.size()], counts[k][0]) << "one tensor, two operands";
  }
  EXPECT_EQ(seen, 4U);
}

TEST(CountedStep, TakesFromTheGraphWhatHasNoPageOfItsOwn) {
  Trainer trainer = start_unlimited(plain_network());  // tensors lie side by side
  fill_inputs(trainer, 1);
  const KernelAccesses counts = trainer.counted_step().value();
  const Graph& graph = trainer.program().graph;
  std::size_t assumed = 0, watched = 0;
  for (std::uint32_t k = 0; k < counts.size(); ++k) {
    for (std::size_t i = 0; i < counts[k].size(); ++i) {
      if (counts[k][i].pages > 0) {
        ++watched;
      } else {
        ++assumed;
        EXPECT_EQ(counts[k][i], assumed_accesses(graph, {k}, i));
      }
    }
  }
  EXPECT_GT(assumed, 0U);
  EXPECT_GT(watched, 0U);
}

TEST(CountedStep, DoesNoStepWhereAccessesAreCountedAlready) {
  Trainer trainer = start_unlimited(plain_network());
  fill_inputs(trainer, 1);
  const auto other = start_profile();
  const auto refused = trainer.counted_step();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("already"), std::string::npos);
  EXPECT_EQ(trainer.steps_done(), 0U);
  EXPECT_FALSE(trainer.failed());
}

TEST(Compile, AlignsTensorsWhereAsked) {
  const Program program = aligned(compile(small_resnet(), 1).value(), 4_KiB);
  EXPECT_TRUE(std::all_of(program.offsets.begin(), program.offsets.end(),
                          [](std::uint64_t offset) { return offset % 4096 == 0; }));
  EXPECT_GE(program.arena, program.peak);
}

}  // namespace
}  // namespace terrace
