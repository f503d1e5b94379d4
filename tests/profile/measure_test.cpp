#include "profile/measure.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "backends/processor.hpp"
#include "exec/nets.hpp"
#include "graph/variant.hpp"
#include "profile/kernel_benchmark.hpp"
#include "profile/kernel_key.hpp"
#include "profile/operands.hpp"
#include "terrace/plan.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

const Backend& processor() { return **processor_backend(); }

using namespace literals;

/// Enough for every operand of these nets, and little to stream over: the tests ask what was measured, not
/// how long it took.
constexpr Bytes kBudget = 4_MiB;

Graph lowered(const Graph& graph) { return compile(graph, 1).value().graph; }

std::vector<Graph> all_nets() {
  return {small_resnet(), small_mobilenet(), small_gpt(), small_lstm(), small_generator()};
}

std::size_t different_kernels(const Graph& graph) {
  std::set<std::string> keys;
  for (const Kernel& kernel : graph.kernels) keys.insert(kernel_key(processor(), graph, kernel));
  return keys.size();
}

/// Counts what is really measured.
struct Counter {
  std::size_t calls = 0;
  MeasureProgress last = {};
  MeasureOptions options(ProfileStore* store = nullptr) {
    return {1, kBudget, store, [this](const MeasureProgress& progress) { ++calls, last = progress; }};
  }
};

TEST(Measure, TimesEveryKernelOfEveryKindOfNet) {
  for (const Graph& net : all_nets()) {
    SCOPED_TRACE(net.name);
    const Graph graph = lowered(net);
    const Machine machine = two_tier_machine();
    const Profile profile = measure(graph, machine, {1, kBudget}).value();
    EXPECT_TRUE(profile.is_measured());
    EXPECT_EQ(profile.graph, fingerprint(graph));
    EXPECT_EQ(profile.machine, fingerprint(machine));
    for (const KernelProfile& kernel : profile.kernels) {
      const PlacedTime& time = kernel.variants.at(0).at(0);
      EXPECT_TRUE(std::isfinite(time.cold.count()) && time.warm > Seconds{0} && time.cold >= time.warm);
      EXPECT_TRUE(std::isfinite(time.spread.count()) && time.spread >= Seconds{0});
      EXPECT_GE(time.samples, 3U);
    }
    EXPECT_GT(KernelClock(graph, machine, profile).fast_step(), Seconds{0});
  }
}

/// A matrix product that oneDNN has with and without a workspace.
Graph product() {
  Net net("product");
  net.result(net.matmul(net.input("a", {2, 64, 64}), net.input("b", {2, 64, 64})));
  return lowered(std::move(net).finish());
}

TEST(Measure, TimesEveryVariant) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "this processor lacks AVX-512";
  const Graph graph = product();
  ASSERT_EQ(graph.kernels[0].variants.size(), 2U);
  Counter counter;
  const Profile profile = measure(graph, two_tier_machine(), counter.options()).value();
  EXPECT_EQ(counter.calls, 2U);
  EXPECT_TRUE(profile.is_measured());
  ASSERT_EQ(profile.kernels[0].variants.size(), 2U);
  for (const auto& places : profile.kernels[0].variants) {
    EXPECT_EQ(places.front().tiers, std::vector<TierId>(4));
    EXPECT_GE(places.front().samples, 3U);
  }
}

TEST(Measure, EstimatesAVariantThatIsTooLargeWhereAnotherFits) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "this processor lacks AVX-512";
  const Graph graph = product();
  const Bytes operands{3 * 2 * 64 * 64 * sizeof(float)};
  const Profile profile = measure(graph, two_tier_machine(), {1, operands}).value();
  const auto& variants = profile.kernels[0].variants;
  EXPECT_EQ(variants[0], estimate(graph, two_tier_machine()).kernels[0].variants[0]);
  EXPECT_GE(variants[1].front().samples, 3U);
  EXPECT_FALSE(measure(graph, two_tier_machine(), {1, operands - Bytes{1}}));
}

/// Neither endless, nor no number, nor so small that the processor takes its slow path.
std::size_t odd_numbers(std::span<const std::byte> bytes) {
  std::size_t odd = 0;
  for (std::size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, &bytes[i], sizeof value);
    if (value != 0 && !std::isnormal(value)) ++odd;
  }
  return odd;
}

TEST(KernelBenchmark, LeavesOrdinaryNumbersHoweverOftenAKernelRuns) {
  for (const Graph& net : all_nets()) {
    const Graph graph = lowered(net);
    KernelBenchmark benchmark = KernelBenchmark::open(processor(), kBudget).value();
    for (const Kernel& kernel : graph.kernels) {
      SCOPED_TRACE(net.name + ": " + kernel.name);
      benchmark.measure(graph, kernel);
      for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
        for (const Operand& operand : *operands) {
          if (graph[operand.tensor].type != DataType::f32) continue;
          EXPECT_EQ(odd_numbers(benchmark.contents(graph, kernel, operand.tensor)), 0U);
        }
      }
    }
  }
}

TEST(Measure, MeasuresKernelsThatAreAlikeOnce) {
  const Graph graph = lowered(small_gpt());
  Counter counter;
  const Profile profile = measure(graph, two_tier_machine(), counter.options()).value();
  ASSERT_LT(different_kernels(graph), graph.kernels.size());
  EXPECT_EQ(counter.calls, different_kernels(graph));
  EXPECT_EQ(counter.last.done, counter.last.all);
  for (std::size_t a = 0; a < graph.kernels.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (kernel_key(processor(), graph, graph.kernels[a]) !=
          kernel_key(processor(), graph, graph.kernels[b]))
        continue;
      EXPECT_EQ(profile.kernels[a], profile.kernels[b]);
    }
  }
}

TEST(Measure, TakesFromTheStoreWhatItKnows) {
  const TemporaryFolder folder;
  const Graph graph = lowered(small_resnet());
  Profile first;
  {
    auto store = ProfileStore::open(folder / "store").value();
    first = measure(graph, two_tier_machine(), Counter().options(&store)).value();
  }
  auto store = ProfileStore::open(folder / "store").value();
  Counter counter;
  EXPECT_EQ(measure(graph, two_tier_machine(), counter.options(&store)).value(), first);
  EXPECT_EQ(counter.calls, 0U);
  const std::vector<Accesses> counted{{2, 0, 5}, {0, 1, 5}};
  store.save_accesses(kernel_key(processor(), graph, graph.kernels[0]), compute_key(processor(), 1), counted);
  EXPECT_EQ(measure(graph, two_tier_machine(), counter.options(&store)).value().kernels[0].operands, counted);
}

TEST(Measure, StartsWarmWhereAnotherModelSharesKernels) {
  const TemporaryFolder folder;
  auto store = ProfileStore::open(folder / "store").value();
  Counter shallow, deep;
  const auto gpt = [](std::int64_t layers) {
    Net net("gpt");
    const Value tokens = net.input("tokens", {2, 12}, DataType::i32);
    const Value target = net.input("target", {2, 12}, DataType::i32);
    const networks::GptOptions options{
        .vocabulary = 10, .positions = 12, .hidden = 24, .layers = layers, .heads = 3, .dropout = 0.2F};
    net.train(net.cross_entropy(networks::gpt(net, tokens, options), target), {});
    return lowered(std::move(net).finish());
  };
  EXPECT_TRUE(measure(gpt(1), two_tier_machine(), shallow.options(&store)));
  EXPECT_TRUE(measure(gpt(3), two_tier_machine(), deep.options(&store)));
  EXPECT_GT(shallow.calls, 10U);
  EXPECT_LT(deep.calls, shallow.calls / 2);
}

TEST(Measure, FailsWithTheKernelAndTheBytesWhereTheBudgetIsTooSmall) {
  const Graph graph = lowered(small_resnet());
  const auto profile = measure(graph, two_tier_machine(), {1, 1_KiB});
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, ErrorCode::too_large);
  EXPECT_NE(profile.error().message.find("measuring kernel '"), std::string::npos) << profile.error().message;
  EXPECT_NE(profile.error().message.find("1.00 KiB"), std::string::npos) << profile.error().message;
}

TEST(Measure, FailsForForeignKernels) {
  const auto profile = measure(one_kernel({64}, {64}, 0), two_tier_machine(), {1, kBudget});
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, ErrorCode::unsupported);
}

/// Lends an arena of its own and counts.
struct Arena {
  Bytes most{};
  std::size_t lent = 0;
  MeasureOptions options(Bytes budget) {
    MeasureOptions options{1, budget, nullptr, {}, {budget, Bytes{}}};
    options.lend = [this](TierId, Bytes bytes) {
      ++lent;
      most = std::max(most, bytes);
      TierSpec spec;
      spec.capacity = bytes;
      return open_tier(spec);
    };
    return options;
  }
};

TEST(Measure, TakesMemoryThatIsLentInstead) {
  const Graph graph = lowered(small_gpt());
  Arena arena;
  EXPECT_TRUE(measure(graph, two_tier_machine(), arena.options(kBudget)).value().is_measured());
  EXPECT_EQ(arena.lent, 1U);
  EXPECT_LE(arena.most, kBudget);
}

TEST(Measure, EstimatesKernelsThatAreTooLargeForMemoryThatIsLent) {
  const Graph graph = lowered(small_gpt());
  const Machine machine = two_tier_machine();
  Bytes largest{};
  const auto bytes_of = [&](const Kernel& kernel) { return benchmark_bytes(graph, as_variant(kernel, 0)); };
  for (const Kernel& kernel : graph.kernels) largest = std::max(largest, bytes_of(kernel));
  Arena arena;
  const Profile profile = measure(graph, machine, arena.options(largest / 2)).value();
  const Profile estimated = estimate(graph, machine);
  std::size_t measured = 0;
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    const bool fits = bytes_of(graph.kernels[i]) <= largest / 2;
    const auto& first = profile.kernels[i].variants[0];
    EXPECT_EQ(first[0].samples > 0, fits) << graph.kernels[i].name;
    EXPECT_TRUE(fits || first == estimated.kernels[i].variants[0]);
    measured += fits ? 1 : 0;
  }
  EXPECT_GT(measured, 0U);
  EXPECT_LT(measured, graph.kernels.size());
}

TEST(Measure, FailsWhereNoMemoryIsLent) {
  MeasureOptions options{1, kBudget, nullptr, {}, {kBudget, Bytes{}}};
  options.lend = [](TierId, Bytes) -> Result<std::unique_ptr<Tier>> {
    return Error{ErrorCode::too_large, "it is in use"};
  };
  const auto profile = measure(lowered(small_gpt()), two_tier_machine(), options);
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().message, "it is in use");
}

TEST(Measure, TellsComputersApartByThreads) {
  EXPECT_NE(compute_key(processor(), 1), compute_key(processor(), 2));
}

}  // namespace
}  // namespace terrace
