// SPDX-License-Identifier: Apache-2.0
// What a split graph computes is what the whole one does.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "split/nets.hpp"
#include "support/long_tests.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

using test::adam;
using test::classifier;
using test::expect_near;
using test::expect_same_bits;
using test::residual;
using test::tied;

constexpr Optimizer kPlain{.momentum = 0};

struct Pair {
  Trainer whole, split;

  Pair(const Graph& graph, std::uint64_t percent)
      : whole(start(graph)), split(start(test::split(graph, percent))) {}
  /// Returns by how much the losses differ at most.
  float train(int steps) {
    float most = 0;
    for (int i = 0; i < steps; ++i) {
      const auto seed = static_cast<std::uint64_t>(i);
      most = std::max(most, std::abs(step(whole, seed) - step(split, seed)));
    }
    return most;
  }
};

TEST(SplitResults, WeightsStartWithTheSameBits) {
  for (const Graph& graph : {classifier(517, 203), tied(331, 37), residual(70, 5, 3), classifier(64, 333)}) {
    const Pair pair(graph, 45);
    expect_same_bits(pair.whole, pair.split);
  }
}

TEST(SplitResults, LookedUpRowsTheirGradientsAndUpdatesHaveTheSameBits) {
  for (const Optimizer& optimizer : {adam(), Optimizer{}, kPlain}) {
    for (const std::int64_t words : {200, 333, 1001}) {
      Pair pair(test::lookup(words, 23, optimizer), 35);
      EXPECT_EQ(pair.train(4), 0);
      expect_same_bits(pair.whole, pair.split);
    }
  }
}

TEST(SplitResults, LinearLayersAgreeToRounding) {
  SplitMix random(7);
  for (int i = 0; i < 6; ++i) {
    const auto inputs = static_cast<std::int64_t>(100 + random.below(500));
    const auto hidden = static_cast<std::int64_t>(30 + random.below(300));
    SCOPED_TRACE(std::to_string(inputs) + " to " + std::to_string(hidden));
    Pair pair(classifier(inputs, hidden, i % 2 == 0 ? Optimizer{} : adam()), 40);
    EXPECT_LT(pair.train(3), 1e-4F);
    expect_near(pair.whole, pair.split, 1e-3F);
  }
}

TEST(SplitResults, TiedTablesAgreeToRounding) {
  for (const std::int64_t words : {100, 257, 640}) {
    Pair pair(tied(words, 24), 60);
    EXPECT_LT(pair.train(3), 1e-4F);
    expect_near(pair.whole, pair.split, 1e-3F);
  }
}

TEST(SplitResults, NormalisationsByChannelsAgreeToRounding) {
  std::vector<std::pair<int, int>> sizes{{32, 16}, {18, 20}};
  if (long_tests()) sizes = {{32, 16}, {48, 20}, {70, 24}};
  for (const auto& [channels, side] : sizes) {
    Pair pair(residual(channels, side), 90);
    EXPECT_GT(find_parts(pair.split.program().graph, "bn2.weight").size(), 1U);
    EXPECT_LT(pair.train(3), 1e-4F);
    expect_near(pair.whole, pair.split, 1e-3F);
  }
}

TEST(SplitResults, ConvolutionsAndPoolingByTheBatchAgreeToRounding) {
  for (const std::int64_t batch : {2, 5, 8}) {
    Pair pair(test::pictures(batch, 16, 12), 60);
    EXPECT_LT(pair.train(3), 1e-4F);
    expect_near(pair.whole, pair.split, 1e-3F);
  }
}

TEST(SplitResults, RecurrencesByTheBatchAgreeToRounding) {
  for (const std::int64_t batch : {17, 30}) {
    Pair pair(test::recurrent(batch, 8), 70);
    EXPECT_LT(pair.train(3), 1e-4F);
    expect_near(pair.whole, pair.split, 1e-3F);
  }
}

TEST(SplitResults, ConvolutionsByOutputChannelsAgreeToRounding) {
  for (const std::int64_t channels : {40, 64}) {
    Pair pair(residual(channels, 4, 3), 40);
    EXPECT_GT(find_parts(pair.split.program().graph, "conv2.weight").size(), 1U);
    EXPECT_LT(pair.train(3), 1e-4F);
    expect_near(pair.whole, pair.split, 1e-3F);
  }
}

TEST(SplitResults, WeightsGoThroughFilesInBothDirections) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "weights.safetensors";
  const Graph graph = classifier(300, 131);
  Pair pair(graph, 40);
  pair.train(2);
  pair.split.save_weights(file).value();
  Trainer other = start(graph, 9);
  other.load_weights(file).value();
  for (const char* name : {"first.weight", "first.bias", "middle.weight"})
    EXPECT_TRUE(test::same_bits(other.read(name), pair.split.read(name))) << name;
  pair.whole.save_weights(file).value();
  pair.split.load_weights(file).value();
  for (const char* name : {"first.weight", "first.bias", "middle.weight"})
    EXPECT_TRUE(test::same_bits(pair.whole.read(name), pair.split.read(name))) << name;
}

TEST(SplitResults, ATensorIsWrittenByTheNameOfTheWholeAndReadByThatOfAPart) {
  Trainer trainer = start(test::split(classifier(300, 131), 40));
  std::vector<float> values(300 * 131);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  trainer.write("first.weight", values);
  EXPECT_EQ(trainer.read("first.weight"), values);
  const std::vector<float> part = trainer.read("first.weight/1");
  const auto first =
      trainer.program().graph[find_tensor(trainer.program().graph, "first.weight/1")].part_of->first;
  EXPECT_EQ(part,
            std::vector<float>(values.begin() + first * 300,
                               values.begin() + first * 300 + static_cast<std::ptrdiff_t>(part.size())));
  EXPECT_THROW(trainer.write("first.weight", std::vector<float>(300)), std::logic_error);
  EXPECT_THROW(trainer.read("none"), std::logic_error);
}

TEST(SplitResults, ACheckpointOfASplitGraphIsNotTakenForOneOfTheWhole) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "checkpoint.safetensors";
  Pair pair(classifier(300, 131), 40);
  pair.split.save_checkpoint(file).value();
  const auto refused = pair.whole.load_checkpoint(file);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("the fast memory it was made with"), std::string::npos);
  pair.train(1);
  pair.split.load_checkpoint(file).value();
  EXPECT_EQ(pair.split.steps_done(), 0U);
}

}  // namespace
}  // namespace terrace
