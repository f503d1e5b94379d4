// SPDX-License-Identifier: Apache-2.0
// Winograd's convolutions against direct ones: two algorithms with different bits and workspaces.
#include "backends/processor.hpp"
#include "exec/planned.hpp"
#include "graph/variant.hpp"
#include "terrace/net.hpp"
#include "terrace/pipeline.hpp"

namespace terrace {
namespace {

/// Convolutions that take Winograd's algorithm.
Graph wide_convolutions() {
  Net net("wide");
  Value image = net.input("image", {2, 32, 24, 24});
  const Value label = net.input("label", {2}, DataType::i32);
  for (const char* name : {"a", "b", "c"})
    image = net.relu(net.conv2d(name, image, 32, {.kernel = {3, 3}, .padding = {1, 1}}));
  net.train(net.cross_entropy(net.linear("classes", net.flatten(image), 10), label), {});
  return std::move(net).finish();
}

TEST(AnyVariant, PlansChooseAndTheReferenceHasTheirBits) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "this processor has no Winograd kernels";
  const Program program = compile(wide_convolutions(), processor_backend(Variants::any).value(), 1).value();
  std::size_t choices = 0;
  for (const Kernel& kernel : program.graph.kernels) choices += kernel.variants.size() > 1 ? 1 : 0;
  ASSERT_GE(choices, 3U);
  const Machine machine = two_tiers("emulated:1GiB,read=20GB/s,write=10GB/s,latency=100ns");
  Profile profile = estimate(program.graph, machine);
  // Winograd's is twice as fast, as it is in truth; the roofline knows no difference.
  for (std::size_t k = 0; k < profile.kernels.size(); ++k)
    for (std::size_t i = 1; i < profile.kernels[k].variants.size(); ++i)
      for (PlacedTime& placed : profile.kernels[k].variants[i]) placed.cold = placed.warm = 2 * placed.cold;
  const auto chosen = [&](Bytes fast) {
    return make_plan("prefetch", {program.graph, machine, profile, {fast, machine.tiers[1].capacity}});
  };
  const auto direct = [&](const Plan& plan) {
    std::size_t count = 0;
    for (const Instruction& one : plan.instructions) {
      const auto* run = std::get_if<terrace::Run>(&one);
      count += run != nullptr && runs_without_workspace(program.graph[run->kernel], run->variant) ? 1 : 0;
    }
    return count;
  };
  const auto roomy = chosen(program.peak * 2), tight = chosen(least_budget(program.graph, machine).bytes);
  ASSERT_TRUE(roomy.ok() && tight.ok());
  EXPECT_EQ(direct(*roomy), 0U) << "Winograd's where there is room";
  EXPECT_GT(direct(*tight), 0U) << "without its workspace where there is none";
  const auto losses = [&](Trainer trainer) {
    std::vector<std::vector<std::byte>> all;
    for (std::uint64_t at = 0; at < 3; ++at) {
      step(trainer, at);
      all.push_back(trainer.result_bytes(0));
    }
    return all;
  };
  const TrainerOptions options{.seed = 1};
  const auto planned = losses(
      Trainer::start(program, verify(program.graph, machine, *tight).value(), machine, options).value());
  EXPECT_EQ(planned, losses(Trainer::start(as_planned(program, *tight), options).value()));
  EXPECT_NE(planned, losses(Trainer::start(program, options).value()))
      << "two algorithms have two sets of bits";
}

}  // namespace
}  // namespace terrace
