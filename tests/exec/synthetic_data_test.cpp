#include "train/synthetic_data.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "terrace/models.hpp"
#include "terrace/net.hpp"

namespace terrace {
namespace {

/// Looks up one of 7 rows per sample, and is told which of 5 classes it was.
Graph small_graph() {
  Net net("small");
  const Value picture = net.input("picture", {400, 4}), other = net.input("other", {400, 4});
  const Value token = net.input("token", {400}, DataType::i32);
  const Value label = net.input("label", {400}, DataType::i32);
  const Value sum =
      net.add(net.linear("fc", net.mul(picture, other), 8), net.embedding("table", token, 7, 8));
  net.train(net.cross_entropy(net.linear("out", sum, 5), label), {});
  return std::move(net).finish();
}

Trainer start(const Graph& graph) { return Trainer::start(compile(graph, 1).value(), {}).value(); }

struct Inputs {
  std::vector<float> picture, other;
  std::vector<std::int32_t> token, label;
  bool operator==(const Inputs&) const = default;
};

Inputs filled(Trainer& trainer, std::uint64_t seed, std::uint64_t step) {
  SyntheticData(small_graph(), seed).fill(step, trainer);
  const auto picture = trainer.input("picture"), other = trainer.input("other");
  const auto token = trainer.integer_input("token"), label = trainer.integer_input("label");
  return {{picture.begin(), picture.end()},
          {other.begin(), other.end()},
          {token.begin(), token.end()},
          {label.begin(), label.end()}};
}

TEST(SyntheticData, IntegersStayBelowWhatTheirReaderKnowsAndReachIt) {
  Trainer trainer = start(small_graph());
  const Inputs inputs = filled(trainer, 1, 0);
  EXPECT_EQ(std::set(inputs.token.begin(), inputs.token.end()), (std::set{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(std::set(inputs.label.begin(), inputs.label.end()), (std::set{0, 1, 2, 3, 4}));
}

TEST(SyntheticData, NumbersAreNormallyDistributed) {
  Trainer trainer = start(small_graph());
  const auto values = filled(trainer, 1, 0).picture;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 1600;
  const double square = std::inner_product(values.begin(), values.end(), values.begin(), 0.0) / 1600;
  EXPECT_NEAR(mean, 0, 0.125);  // five standard deviations
  EXPECT_NEAR(square, 1, 0.18);
}

TEST(SyntheticData, IsAFunctionOfSeedAndStep) {
  Trainer trainer = start(small_graph());
  const Inputs first = filled(trainer, 1, 0), second = filled(trainer, 1, 1), other = filled(trainer, 2, 0);
  EXPECT_EQ(filled(trainer, 1, 0), first);
  EXPECT_NE(first.picture, second.picture);
  EXPECT_NE(first.token, second.token);
  EXPECT_NE(first.label, other.label);
  EXPECT_NE(first.picture, first.other) << "inputs of one step have numbers of their own";
}

TEST(SyntheticData, FitsEveryModelOfTheZoo) {
  for (const ModelInfo& info : models()) {
    const Graph graph = build_model(info.name, {.batch = 2, .micro_batches = 2}).value();
    EXPECT_NO_THROW(SyntheticData(graph, 0)) << info.name;
  }
}

TEST(SyntheticData, RefusesIntegersWithoutAKnownReader) {
  Graph graph = small_graph();
  std::erase_if(graph.kernels,
                [](const Kernel& kernel) { return operation_of(kernel) == Operation::cross_entropy; });
  EXPECT_THROW(SyntheticData(graph, 0), std::logic_error);
}

}  // namespace
}  // namespace terrace
