// Variants of compiled kernels: what is offered, and that a step is the same whichever runs.
#include <algorithm>
#include <set>

#include "backends/cpu/instantiate.hpp"
#include "backends/cpu/lowering.hpp"
#include "backends/cpu/variants.hpp"
#include "exec/planned.hpp"
#include "graph/variant.hpp"
#include "terrace/models.hpp"

namespace terrace {
namespace {

/// oneDNN has several matrix products for AVX-512 only.
#define NEEDS_AVX512() \
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "this processor lacks AVX-512"

/// Attention over so many numbers that variants are tried.
Graph attention() {
  Net net("attention");
  const Value tokens = net.input("tokens", {2, 64}, DataType::i32);
  const Value target = net.input("target", {2, 64}, DataType::i32);
  const networks::GptOptions options{
      .vocabulary = 10, .positions = 64, .hidden = 128, .layers = 1, .heads = 2, .dropout = 0.1F};
  net.train(net.cross_entropy(networks::gpt(net, tokens, options), target), {.kind = Optimizer::Kind::adam});
  return std::move(net).finish();
}

Graph product(std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  Net net("product");
  net.result(net.matmul(net.input("a", {2, rows, inner}), net.input("b", {2, inner, columns})));
  return std::move(net).finish();
}

std::size_t with_choice(const Graph& graph) {
  return static_cast<std::size_t>(
      std::count_if(graph.kernels.begin(), graph.kernels.end(),
                    [](const Kernel& kernel) { return kernel.variants.size() > 1; }));
}

/// The plan with every kernel that can do so running without its workspace, which has no region then.
Plan without_workspaces(const Graph& graph, Plan plan) {
  std::set<TensorId> unused;
  for (Instruction& instruction : plan.instructions) {
    auto* run = std::get_if<Run>(&instruction);
    if (run == nullptr || graph[run->kernel].variants.size() < 2) continue;
    run->variant = 1;
    EXPECT_TRUE(runs_without_workspace(graph[run->kernel], 1));
    unused.insert(graph[run->kernel].workspace);
  }
  std::erase_if(plan.instructions, [&](const Instruction& instruction) {
    const auto* alloc = std::get_if<Alloc>(&instruction);
    const auto* free = std::get_if<Free>(&instruction);
    return (alloc != nullptr && unused.contains(alloc->tensor)) ||
           (free != nullptr && unused.contains(free->tensor));
  });
  return plan;
}

TEST(Variants, OfAttentionNeedNoWorkspaceAndGiveTheSameBits) {
  NEEDS_AVX512();
  const Program program = compile(attention(), 1).value();
  EXPECT_EQ(with_choice(program.graph), 6U);
  const SlowTier slow = fake_memory();
  const auto plan = verify(program.graph, slow.machine,
                           without_workspaces(program.graph, spill_plan(program.graph, slow.machine)))
                        .value();
  Trainer other = Trainer::start(program, plan, slow.machine, {.seed = 1, .learning_rate = 0.01F}).value();
  Trainer unlimited = start_unlimited(attention());
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(step(other, i), step(unlimited, i)) << i;
  expect_same_state(other, unlimited);
  EXPECT_TRUE(other.counted_step());
}

/// Sums of so many terms are made in blocks, and each implementation has its own.
TEST(Variants, ThatGiveOtherBitsAreNotOffered) {
  NEEDS_AVX512();
  const Graph graph = cpu::lower(product(64, 1000, 64), 1).value();
  const Kernel& kernel = graph.kernels.front();
  ASSERT_FALSE(cpu::alternatives(*cpu::recipe(kernel, cpu::descs_of(graph, kernel))).empty());
  EXPECT_EQ(cpu::with_variants(graph), graph);
  EXPECT_EQ(with_choice(cpu::with_variants(cpu::lower(product(64, 100, 64), 1).value())), 1U);
}

/// Few results may agree by chance.
TEST(Variants, AreNotOfferedWhereTryingShowsLittle) {
  const Graph graph = cpu::lower(product(8, 16, 16), 1).value();
  EXPECT_EQ(cpu::with_variants(graph), graph);
}

TEST(Implementation, OfEveryKernelInTheZooIsTheOneItsVariantNames) {
  for (const char* name : {"resnet50", "mobilenet", "gpt2", "lstm", "dcgan"}) {
    const Graph graph = cpu::lower(build_model(name, {.batch = 2, .sequence = {}}).value(), 2).value();
    for (const Kernel& kernel : graph.kernels) {
      EXPECT_NO_THROW(cpu::instantiate(graph, kernel)) << kernel.name;
    }
  }
}

}  // namespace
}  // namespace terrace
