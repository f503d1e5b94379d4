// SPDX-License-Identifier: Apache-2.0
// Buckets and paths within a budget, on tiers of this computer.
#include <cstdlib>

#include "exec/planned.hpp"
#include "profile/computer_name.hpp"
#include "split/nets.hpp"
#include "terrace/machine_file.hpp"
#include "train/bucket_trainer.hpp"
#include "train/padded_data.hpp"

namespace terrace {
namespace {
using namespace literals;

/// In a cache folder of its own, on a machine with made-up figures, so that nothing is calibrated.
class BucketsInABudget : public testing::Test {
 protected:
  BucketsInABudget() {
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    Machine machine = two_tiers("fake:1MiB,blocks", {64}, {512}, false);
    machine.compute.name = computer_name().processor;
    write_machine(machine, folder_ / "machine.json");
  }
  ~BucketsInABudget() override { unsetenv("XDG_CACHE_HOME"); }

  BucketRequest request(std::vector<std::int64_t> sizes, Graph (*graph)(std::int64_t), std::string fast) {
    BucketRequest request;
    request.sizes = std::move(sizes);
    request.graph_of = [graph](std::int64_t size) -> Result<Graph> { return graph(size); };
    request.threads = 1;
    request.machine = folder_ / "machine.json";
    request.fast = std::move(fast);
    request.planner = "prefetch";
    request.options = {.seed = 1};
    return request;
  }

  TemporaryFolder folder_;
};

/// Switches to each of these sizes in turn, in the budget and with all memory.
void expect_same_bits(BucketTrainer& limited, const std::vector<std::int64_t>& sizes) {
  BucketTrainer unlimited = limited.unlimited({.seed = 1}).value();
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    for (BucketTrainer* each : {&limited, &unlimited}) each->use(sizes[i]).value();
    EXPECT_EQ(step(limited.trainer(), i), step(unlimited.trainer(), i)) << i;
  }
  expect_same_state(limited.trainer(), unlimited.trainer());
  EXPECT_EQ(limited.trainer().steps_done(), sizes.size());
  EXPECT_EQ(limited.switches().size(), unlimited.switches().size());
}

TEST_F(BucketsInABudget, TrainNetworksOfSequencesWithTheSameBits) {
  const auto lstm = [](std::int64_t size) { return small_lstm(size); };
  const auto bert = [](std::int64_t size) { return small_bert(size); };
  const auto gpt = [](std::int64_t size) { return small_gpt(size); };
  for (Graph (*graph)(std::int64_t) : {+lstm, +bert, +gpt}) {
    SCOPED_TRACE(graph(12).name);
    BucketTrainer buckets = BucketTrainer::start(request({4, 7, 12}, graph, "80%")).value();
    expect_same_bits(buckets, {12, 3, 6, 4, 11, 7, 7, 1});
    EXPECT_LT(buckets.trainer().budget()[0], buckets.peak());
    for (const SizeBucket& bucket : buckets.buckets()) EXPECT_TRUE(bucket.planned) << bucket.size;
    EXPECT_EQ(buckets.buckets()[0].made_at, 1U);
    EXPECT_EQ(buckets.buckets()[1].made_at, 2U);
  }
}

/// The padding of each batch goes with its bucket.
TEST_F(BucketsInABudget, TrainBertOnPaddedSequencesWithTheSameBits) {
  const auto bert = [](std::int64_t size) { return small_bert(size); };
  const Lengths lengths = Lengths::read("2-12").value();
  BucketTrainer limited = BucketTrainer::start(request({5, 8, 12}, +bert, "60%")).value();
  BucketTrainer unlimited = limited.unlimited({.seed = 1}).value();
  PaddedData data(limited.trainer().program().graph, 1, lengths, 1);
  for (std::uint64_t i = 0; i < 12; ++i) {
    float loss[2] = {};
    for (BucketTrainer* each : {&limited, &unlimited}) {
      each->use(data.length(i)).value();
      data.fill(i, each->trainer());
      each->trainer().step();
      loss[each == &limited ? 0 : 1] = each->trainer().result(0)[0];
    }
    EXPECT_EQ(loss[0], loss[1]) << i;
  }
  expect_same_state(limited.trainer(), unlimited.trainer());
  EXPECT_GT(limited.switches().size(), 2U);
}

std::size_t parts_of(const char* tensor, BucketTrainer& buckets, const TrainedGraph& graph) {
  return find_parts(buckets.trainer().program(*graph.number).graph, tensor).size();
}

/// A table of words that is large beside everything else, and compared with as many as there are.
Graph words(std::int64_t size) {
  Net net("words");
  const Initial initial{Initial::Kind::normal, 0, 0.1F};
  Value x = net.embedding("words", net.input("tokens", {size}, DataType::i32), 400, 40, initial);
  x = net.gelu(net.linear("inner", x, 40));
  const Value logits = net.linear_with(x, net.parameter("words.weight", {400, 40}, initial));
  net.train(net.cross_entropy(logits, net.input("target", {size}, DataType::i32)), test::adam());
  return std::move(net).finish();
}

TEST_F(BucketsInABudget, AreSplitToFitWithTheSameBits) {
  BucketTrainer buckets = BucketTrainer::start(request({6, 12, 30}, words, "190KiB")).value();
  expect_same_bits(buckets, {30, 5, 10, 6, 29, 12, 3, 30, 11});
  for (const SizeBucket& bucket : buckets.buckets()) {
    EXPECT_GT(bucket.split_kernels, 0U) << bucket.size;
    EXPECT_GT(parts_of("words.weight", buckets, bucket), 1U) << bucket.size;
  }
}

TEST_F(BucketsInABudget, ThatCannotBeSplitAreRefusedWithTheReason) {
  const auto lstm = [](std::int64_t size) { return small_lstm(size); };
  const auto refused = BucketTrainer::start(request({4, 7}, +lstm, "3KiB"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cannot be worked on in parts"), std::string::npos)
      << refused.error().message;
}

/// Any plan is taken for a better one here, after two steps without a switch.
TEST_F(BucketsInABudget, ArePlannedAgainEachForItselfWithTheSameBits) {
  const auto gpt = [](std::int64_t size) { return small_gpt(size); };
  BucketRequest asked = request({4, 12}, +gpt, "80%");
  asked.planner = "lru";  // whose plans do not depend on times
  asked.adjust = AdjusterOptions{.steps = 1, .tolerance = 0, .gain = -1e9};
  BucketTrainer limited = BucketTrainer::start(std::move(asked)).value();
  BucketTrainer unlimited = limited.unlimited({.seed = 1}).value();
  std::vector<std::int64_t> planned_again;
  const std::vector<std::int64_t> sizes{12, 4, 12, 4, 4, 4, 12, 12, 4};
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    for (BucketTrainer* each : {&limited, &unlimited}) each->use(sizes[i]).value();
    EXPECT_EQ(step(limited.trainer(), i), step(unlimited.trainer(), i)) << i;
    EXPECT_FALSE(unlimited.observe());
    const auto better = limited.observe();
    if (!better) continue;
    planned_again.push_back(sizes[i]);
    const Machine& machine = limited.in_training().adjuster->machine();
    limited.trainer().change_plan(better->plan, machine, folder_.path()).value();
  }
  EXPECT_EQ(planned_again, (std::vector<std::int64_t>{4, 12}));
  expect_same_state(limited.trainer(), unlimited.trainer());
}

class PathsInABudget : public BucketsInABudget {
 protected:
  BucketTrainer start(std::string fast = "80%") {
    return BucketTrainer::start(request(
                                    {1}, [](std::int64_t) { return routed(Route::helped); }, fast))
        .value();
  }
};

TEST_F(PathsInABudget, AreMadeWhenTheyAreMetAndKept) {
  BucketTrainer buckets = start();
  int asked = 0;
  const auto short_cut = [&]() -> Result<Graph> { return ++asked, routed(Route::short_cut); };
  step(buckets.trainer(), 0);
  step(buckets.trainer(), 1);
  EXPECT_TRUE(buckets.paths().empty());
  for (std::uint64_t i = 2; i < 6; ++i) {
    if (i % 2 == 0) buckets.use_path("short cut", short_cut).value();
    if (i % 2 == 1) buckets.use(1).value();
    step(buckets.trainer(), i);
  }
  EXPECT_EQ(asked, 1);
  ASSERT_EQ(buckets.paths().size(), 1U);
  EXPECT_EQ(buckets.paths()[0].name, "short cut");
  EXPECT_EQ(buckets.paths()[0].made_at, 2U);
  EXPECT_TRUE(buckets.paths()[0].planned);
  EXPECT_EQ(buckets.switches().size(), 4U);
}

TEST_F(PathsInABudget, GiveTheSameBitsAsWithAllMemory) {
  for (const char* fast : {"70%", "200%"}) {
    SCOPED_TRACE(fast);
    BucketTrainer limited = start(fast), unlimited = limited.unlimited({.seed = 1}).value();
    const std::vector<Route> routes{Route::helped, Route::short_cut, Route::plain,
                                    Route::helped, Route::short_cut, Route::plain};
    for (std::uint64_t i = 0; i < routes.size(); ++i) {
      for (BucketTrainer* each : {&limited, &unlimited}) {
        const auto graph = [&]() -> Result<Graph> { return routed(routes[i]); };
        const std::string name = routes[i] == Route::plain ? "plain" : "short cut";
        (routes[i] == Route::helped ? each->use(1) : each->use_path(name, graph)).value();
      }
      EXPECT_EQ(step(limited.trainer(), i), step(unlimited.trainer(), i)) << i;
    }
    expect_same_state(limited.trainer(), unlimited.trainer());
  }
}

/// What a path skips it need not split: the tensor is put together there, and cut again on the way back.
TEST_F(PathsInABudget, AreSplitEachInItsOwnWayWithTheSameBits) {
  BucketTrainer limited = start("48KiB"), unlimited = limited.unlimited({.seed = 1}).value();
  for (std::uint64_t i = 0; i < 6; ++i) {
    for (BucketTrainer* each : {&limited, &unlimited}) {
      if (i % 2 == 0) each->use(1).value();
      if (i % 2 == 1)
        each->use_path("short cut", []() -> Result<Graph> { return routed(Route::short_cut); }).value();
    }
    EXPECT_EQ(step(limited.trainer(), i), step(unlimited.trainer(), i)) << i;
  }
  EXPECT_GT(parts_of("block.in.weight", limited, limited.largest()), 1U);
  EXPECT_EQ(parts_of("block.in.weight", limited, limited.paths()[0]), 1U);
  for (const char* name : {"block.in.weight", "stem.weight", "head.bias"})
    EXPECT_TRUE(same_bits(limited.trainer().read(name), unlimited.trainer().read(name))) << name;
}

TEST_F(PathsInABudget, ThatCannotBeMadeAreNamedAndTrainingGoesOn) {
  BucketTrainer buckets = start();
  const auto none = buckets.use_path("none", []() -> Result<Graph> {
    return Error{ErrorCode::invalid_argument, "there is no such path"};
  });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "path none: there is no such path");
  const auto other = buckets.use_path("other", []() -> Result<Graph> { return small_lstm(); });
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message.find("path other: tensor "), 0U) << other.error().message;
  EXPECT_TRUE(buckets.paths().empty());
  step(buckets.trainer(), 0);
}

/// A path through the same layers for inputs that fast memory does not hold.
Graph wide_path() {
  Net net("wide");
  const Value x = net.relu(net.linear("stem", net.input("x", {6000, 20}), 48));
  const Value label = net.input("label", {6000}, DataType::i32);
  net.train(net.cross_entropy(net.linear("head", x, 10), label), {.kind = Optimizer::Kind::adam});
  return std::move(net).finish();
}

TEST_F(PathsInABudget, ThatFitInNoPlanAreRefusedBeforeTheyAreMeasured) {
  BucketRequest asked = request(
      {1}, [](std::int64_t) { return routed(Route::helped); }, "80%");
  std::vector<std::string> told;
  asked.progress = [&](const std::string& what) { told.push_back(what); };
  BucketTrainer buckets = BucketTrainer::start(std::move(asked)).value();
  told.clear();
  const auto refused = buckets.use_path("wide", []() -> Result<Graph> { return wide_path(); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::too_large);
  EXPECT_EQ(refused.error().message.find("path wide: "), 0U) << refused.error().message;
  for (const char* part : {" of wide needs ", "of fast memory at once and ", " are missing: give at least "})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  for (const std::string& what : told) EXPECT_EQ(what.find("measuring"), std::string::npos) << what;
  EXPECT_TRUE(buckets.paths().empty());
  step(buckets.trainer(), 0);
}

}  // namespace
}  // namespace terrace
