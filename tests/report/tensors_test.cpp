// SPDX-License-Identifier: Apache-2.0
#include "report/tensors.hpp"

#include <gtest/gtest.h>

#include "report/made_up.hpp"
#include "terrace/net.hpp"

namespace terrace {
namespace {
using namespace literals;

const Bucket& bucket(const Distribution& buckets, const std::string& label) {
  for (const Bucket& one : buckets) {
    if (one.label == label) return one;
  }
  throw std::logic_error("there is no bucket " + label);
}

TEST(TensorFacts, SumsAccessesOfAllKernelsOncePerTensor) {
  Net net("relu");
  net.result(net.relu(net.input("x", {4, 8})));
  const Graph graph = std::move(net).finish();
  ASSERT_EQ(graph.kernels.size(), 1U);
  const auto assumed = tensor_facts(graph, {});
  ASSERT_EQ(assumed.size(), 2U);
  EXPECT_EQ(assumed[0].accesses, 1);
  EXPECT_EQ(assumed[1].accesses, 1);
  const auto counted = tensor_facts(graph, {{{3, 0, 1}, {1, 4, 1}}});
  EXPECT_EQ(counted[0].accesses, 3);
  EXPECT_EQ(counted[1].accesses, 5);
}

TEST(TensorFacts, CountsATensorThatIsReadAndWrittenOnceForItsKernel) {
  Net net("training");
  net.train(net.binary_cross_entropy(net.linear("a", net.input("x", {4, 8}), 3), 1), {});
  const Graph graph = std::move(net).finish();
  const TensorId weight = find_tensor(graph, "a.weight");
  const auto facts = tensor_facts(graph, {});
  ASSERT_EQ(facts.size(), graph.tensors.size()) << "all are used";
  EXPECT_EQ(facts[weight.index].accesses, 3) << "read forward, then read and written by its update";
  EXPECT_EQ(facts[weight.index].layers, 0U) << "it outlives the step";
}

TEST(TensorFacts, RefusesCountsOfAnotherGraph) {
  Net net("relu");
  net.result(net.relu(net.input("x", {4, 8})));
  EXPECT_THROW(tensor_facts(std::move(net).finish(), KernelAccesses(2)), std::logic_error);
}

TEST(Distribution, PutsEveryTensorInOneBucket) {
  const auto facts = facts_of({{.bytes = 100, .first = 0, .last = 0, .accesses = 0, .layers = 0},
                               {.bytes = 4095, .first = 0, .last = 0, .accesses = 2, .layers = 1},
                               {.bytes = 4096, .first = 0, .last = 0, .accesses = 3, .layers = 4},
                               {.bytes = 1 << 20, .first = 0, .last = 0, .accesses = 101, .layers = 65}});
  for (const Distribution& buckets : {by_lifetime(facts), by_size(facts), by_accesses(facts)}) {
    std::size_t tensors = 0, small = 0;
    Bytes bytes;
    for (const Bucket& one : buckets) {
      tensors += one.tensors;
      small += one.small_tensors;
      bytes += one.bytes;
    }
    EXPECT_EQ(tensors, 4U);
    EXPECT_EQ(small, 2U);
    EXPECT_EQ(bytes, Bytes{100 + 4095 + 4096 + (1 << 20)});
  }
  EXPECT_EQ(bucket(by_lifetime(facts), "outlives the step").tensors, 1U);
  EXPECT_EQ(bucket(by_lifetime(facts), "1 layer").tensors, 1U);
  EXPECT_EQ(bucket(by_lifetime(facts), "2-4 layers").tensors, 1U);
  EXPECT_EQ(bucket(by_lifetime(facts), "over 64 layers").bytes, 1_MiB);
  EXPECT_EQ(bucket(by_size(facts), "below 4 KiB").small_bytes, Bytes{4195});
  EXPECT_EQ(bucket(by_size(facts), "4-64 KiB").tensors, 1U);
  EXPECT_EQ(bucket(by_size(facts), "1-16 MiB").tensors, 1U);
  EXPECT_EQ(bucket(by_accesses(facts), "below 0.5").tensors, 1U);
  EXPECT_EQ(bucket(by_accesses(facts), "1-2").tensors, 1U);
  EXPECT_EQ(bucket(by_accesses(facts), "3-10").tensors, 1U);
  EXPECT_EQ(bucket(by_accesses(facts), "over 100").tensors, 1U);
}

TEST(Footprint, IsTheMostThatIsLiveAtOnce) {
  // 0-1: 100 and 5000; 2: 5000 and 4000 and 60; 3: 60
  const auto facts = facts_of({{.bytes = 100, .first = 0, .last = 1},
                               {.bytes = 5000, .first = 0, .last = 2},
                               {.bytes = 4000, .first = 2, .last = 2},
                               {.bytes = 60, .first = 2, .last = 3}});
  EXPECT_EQ(footprint(facts, Which::all).original, Bytes{9060});
  EXPECT_EQ(footprint(facts, Which::all).in_pages, Bytes{4 * 4096});
  EXPECT_EQ(footprint(facts, Which::small).original, Bytes{4060});
  EXPECT_EQ(footprint(facts, Which::small).in_pages, Bytes{2 * 4096});
  EXPECT_EQ(footprint({}, Which::all).in_pages, Bytes{0});
}

}  // namespace
}  // namespace terrace
