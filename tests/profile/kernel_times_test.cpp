#include "profile/kernel_times.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "terrace/operation.hpp"

namespace terrace {
namespace {

Kernel kernel(Operation operation, double flops, std::uint64_t bytes) {
  Kernel made;
  made.operation = to_string(operation);
  made.flops = flops;
  made.inputs = {{{0}, {}, Bytes{bytes - 1}, ""}};
  made.outputs = {{{1}, {}, Bytes{1}, ""}};
  return made;
}

Graph three_kernels() {
  Graph graph;
  graph.kernels = {kernel(Operation::relu, 0, 40), kernel(Operation::conv2d, 200, 10),
                   kernel(Operation::relu, 0, 20)};
  return graph;
}

constexpr Rates kRates{100, {10}};

TEST(KernelTimes, AreMeansOverStepsWithTheirBounds) {
  const std::vector<Seconds> times{Seconds{16}, Seconds{8}, Seconds{4}};
  const auto all = kernel_times(three_kernels(), times, 2, kRates);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_DOUBLE_EQ(all[0].time.count(), 8);
  EXPECT_DOUBLE_EQ(all[0].bandwidth().value, 5);
  EXPECT_DOUBLE_EQ(all[0].roofline_share(), 0.5);
  EXPECT_DOUBLE_EQ(all[1].flops_per_second(), 50);
  EXPECT_DOUBLE_EQ(all[1].roofline_share(), 0.5);
  EXPECT_DOUBLE_EQ(all[2].roofline_share(), 1);
}

TEST(KernelTimes, AddUpByOperationTheMostCostlyFirst) {
  const std::vector<Seconds> times{Seconds{2}, Seconds{9}, Seconds{4}};
  const Graph graph = three_kernels();
  const auto kinds = by_operation(graph, kernel_times(graph, times, 1, kRates));
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].operation, "conv2d");
  EXPECT_EQ(kinds[1].operation, "relu");
  EXPECT_EQ(kinds[1].all.kernels, 2U);
  EXPECT_DOUBLE_EQ(kinds[1].all.time.count(), 6);
  EXPECT_EQ(kinds[1].all.touched, Bytes{60});
  EXPECT_DOUBLE_EQ(kinds[1].all.roofline_share(), 1);
}

TEST(KernelTimes, OfNothingAreZero) {
  const KernelTime none;
  EXPECT_EQ(none.flops_per_second(), 0);
  EXPECT_EQ(none.bandwidth().value, 0);
  EXPECT_EQ(none.roofline_share(), 0);
}

TEST(KernelTimes, WantOneTimeForEachKernel) {
  const std::vector<Seconds> two(2);
  EXPECT_THROW(kernel_times(three_kernels(), two, 1, kRates), std::logic_error);
}

TEST(KernelTimes, ShowLayoutsAndImplementationInShort) {
  Kernel made = kernel(Operation::conv2d, 1, 2);
  EXPECT_EQ(layouts_of(made), "row > row");
  EXPECT_EQ(implementation_of(made), "own");
  made.inputs[0].layout = "32x64x56x56:aBcd16b@200704,50176,896,16";
  made.outputs[0].layout = "opaque";
  made.variants = {{"jit:avx512_core", {}, {}}};
  EXPECT_EQ(layouts_of(made), "aBcd16b > opaque");
  EXPECT_EQ(implementation_of(made), "jit:avx512_core");
}

}  // namespace
}  // namespace terrace
