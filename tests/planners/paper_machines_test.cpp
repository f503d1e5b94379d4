// SPDX-License-Identifier: Apache-2.0
// The fitted machines of the papers against facts that the papers print: those that were fitted, and others
// that were kept out of the fit and must follow.
#include <gtest/gtest.h>

#include "graph/passes.hpp"
#include "terrace/models.hpp"
#include "terrace/net.hpp"
#include "terrace/planner.hpp"
#include "terrace/profile.hpp"

namespace terrace {
namespace {

/// A step with everything in the slower tier over one with everything in the fast tier.
double all_slow(const std::string& model, std::int64_t batch, const std::string& preset) {
  const Graph graph = share_in_place(schedule(build_model(model, {.batch = batch}).value()));
  const Machine machine = machine_preset(preset).value();
  const Profile profile = estimate(graph, machine);
  const KernelClock clock(graph, machine, profile);
  Seconds slow{0};
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    const std::size_t operands = kernel.inputs.size() + kernel.outputs.size() + (kernel.workspace ? 1 : 0);
    slow += clock.time({k}, 0, std::vector<TierId>(operands, TierId{1}));
  }
  return slow / clock.fast_step();
}

/// 001 Fig. 4: the convolution's time with its input and its output in either tier, over both in DRAM.
double convolution(TierId input, TierId output) {
  Net net("figure 4");
  const Value image = net.input("image", {128, 128, 112, 112});
  net.result(net.conv2d("conv", image, 128, {.kernel = {3, 3}, .padding = {1, 1}, .bias = false}));
  const Graph graph = std::move(net).finish();
  const Machine machine = machine_preset("optane-autotm").value();
  const Profile profile = estimate(graph, machine);
  const KernelClock clock(graph, machine, profile);
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    if (kernel.flops < 1e11) continue;
    std::vector<TierId> tiers(kernel.inputs.size() + kernel.outputs.size() + (kernel.workspace ? 1 : 0));
    tiers[0] = input;
    tiers[kernel.inputs.size()] = output;
    return clock.time({k}, 0, tiers) / clock.fast({k});
  }
  return 0;
}

TEST(PaperMachines, LoseWhatAConvolutionLost) {
  EXPECT_NEAR(convolution({1}, {0}), 1, 0.05) << "comparable with its input in Optane";
  EXPECT_GT(convolution({0}, {1}), 2) << "over two times slower with its output there";
  EXPECT_LT(convolution({0}, {1}), 2.5);
  EXPECT_GT(convolution({1}, {1}), 2);
}

TEST(PaperMachines, LoseWhatTheFittedNetworksLost) {
  EXPECT_NEAR(all_slow("inception4", 1472, "optane-autotm"), 5, 0.5) << "001 Fig. 1: about 5 times";
  EXPECT_NEAR(all_slow("densenet264", 504, "optane-cachedarrays"), 3.5, 0.5) << "003 section V: 3 to 4 times";
}

/// Kept out of the fit: 001 section 6.1 says 3 to 8 times for its four networks.
TEST(PaperMachines, LoseAboutWhatNetworksOutsideTheFitLost) {
  const double vgg = all_slow("vgg19", 2048, "optane-autotm"),
               resnet = all_slow("resnet200", 512, "optane-autotm"),
               densenet = all_slow("densenet264", 512, "optane-autotm");
  EXPECT_NEAR(vgg, 3, 0.6);
  EXPECT_GT(resnet, 3);
  EXPECT_LT(resnet, 8);
  EXPECT_NEAR(densenet, 8, 0.8);
}

}  // namespace
}  // namespace terrace
