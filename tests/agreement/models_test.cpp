// SPDX-License-Identifier: Apache-2.0
// Networks of the zoo in small sizes against PyTorch's own: the same weights, inputs and optimizer, three
// steps; losses, weights and running statistics agree.
#include <gtest/gtest.h>

#include "agreement/agreement.hpp"
#include "nn/models/training.hpp"
#include "support/long_tests.hpp"
#include "terrace/networks.hpp"

namespace terrace::agreement {
namespace {

constexpr std::size_t kSteps = 3;

constexpr Optimizer kSgd{.momentum = 0.9F, .weight_decay = 1e-3F};
/// A gradient that is rounding alone would move its weight by the whole learning rate, in either direction:
/// an epsilon above the noise keeps such weights still, and leaves every term of Adam in place.
constexpr Optimizer kAdam{.kind = Optimizer::Kind::adam, .epsilon = 1e-3F, .weight_decay = 1e-3F};
constexpr Optimizer kAdamW{
    .kind = Optimizer::Kind::adam, .epsilon = 1e-3F, .weight_decay = 0.1F, .decoupled_decay = true};

Json in_torch(const Optimizer& optimizer, float learning_rate) {
  if (optimizer.kind == Optimizer::Kind::sgd) {
    return {{"name", "sgd"},
            {"learning_rate", learning_rate},
            {"momentum", optimizer.momentum},
            {"weight_decay", optimizer.weight_decay}};
  }
  return {{"name", optimizer.decoupled_decay ? "adamw" : "adam"},
          {"learning_rate", learning_rate},
          {"betas", {optimizer.beta1, optimizer.beta2}},
          {"epsilon", optimizer.epsilon},
          {"weight_decay", optimizer.weight_decay}};
}

/// For networks as deep and narrow as here: at a usual rate their second step moves so far that rounding
/// shows in the third loss (inception4: PyTorch in single and in double precision differ by percents).
constexpr float kCalm = 1e-4F;

struct Reference {
  std::string model;
  Json config;
  Optimizer optimizer;
  float learning_rate = 0.01F;
};

/// What training added agrees too, however small it is beside the tensor: to a hundredth of the largest
/// change, or to the rounding of the values that were changed.
testing::AssertionResult same_change(const std::vector<float>& start, std::vector<float> ours,
                                     std::vector<float> theirs) {
  double change = 0;
  for (std::size_t i = 0; i < start.size(); ++i) {
    ours[i] -= start[i];
    theirs[i] -= start[i];
    change = std::max(change, std::abs(double{theirs[i]}));
  }
  const double rounding = 4e-7 * largest(start);
  if (change < 100 * rounding) return testing::AssertionSuccess();
  return agree(ours, theirs, 1e-2);
}

class Course {
 public:
  Course(const Graph& graph, const Reference& reference)
      : graph_(graph),
        reference_(reference),
        trainer_(Trainer::start(compile(graph).value(), {.seed = 7, .learning_rate = reference.learning_rate})
                     .value()) {
    start_ = read_state(graph_, trainer_);
    std::erase_if(start_, [](const auto& entry) { return entry.second.is_integer(); });
    write_tensors(torch().file("weights"), start_);
  }

  void run() {
    for (std::size_t i = 0; i < kSteps; ++i) {
      add_inputs();
      step();
    }
    ASSERT_EQ(ours_.size(), theirs_.size());
    for (std::size_t i = 0; i < theirs_.size(); ++i)
      EXPECT_NEAR(ours_[i], theirs_[i], kTolerance * std::abs(theirs_[i])) << "loss " << i;
    compare_state();
  }

 private:
  /// Beyond rounding in a deep network; a share of the largest value.
  static constexpr double kMargin = 1e-6;

  /// Data for one more step, away from where gradients jump.
  void add_inputs() {
    files_.push_back(torch().file("step" + std::to_string(files_.size())));
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      inputs_ = draw_inputs(graph_, 100 * files_.size() + seed);
      write_tensors(files_.back().get<std::string>(), inputs_);
      if (ask() > kMargin) return;
    }
    FAIL() << "100 draws of data all lie where a gradient jumps: take a smaller net";
  }

  /// The last result is a loss of its own, those before it are parts of one.
  void step() {
    give(trainer_, inputs_);
    trainer_.step();
    const std::size_t count = graph_.results.size();
    double parts = 0;
    for (std::size_t i = 0; i + 1 < count; ++i) parts += double{trainer_.result(i)[0]};
    if (count > 1) ours_.push_back(parts);
    ours_.push_back(double{trainer_.result(count - 1)[0]});
  }

  /// All steps up to now; returns the margin of the last of them.
  double ask() {
    const Json answer = torch().ask({{"model", reference_.model},
                                     {"config", reference_.config},
                                     {"weights", torch().file("weights")},
                                     {"inputs", files_},
                                     {"optimizer", in_torch(reference_.optimizer, reference_.learning_rate)},
                                     {"result", torch().file("final")}});
    theirs_.clear();
    for (const Json& loss : answer["loss"].flatten()) theirs_.push_back(loss.get<double>());
    return answer["margin"].back().get<double>();
  }

  void compare_state() const {
    const HostTensors theirs = read_tensors(torch().file("final"));
    for (const auto& [name, tensor] : read_state(graph_, trainer_)) {
      // One tensor that differs makes all of them differ: the first tells enough.
      if (tensor.is_integer() || testing::Test::HasFailure()) continue;
      EXPECT_TRUE(agree(tensor.floats, theirs.at(name).floats)) << name;
      EXPECT_TRUE(same_change(start_.at(name).floats, tensor.floats, theirs.at(name).floats)) << name;
    }
  }

  const Graph& graph_;
  const Reference& reference_;
  Trainer trainer_;
  Json files_ = Json::array();
  HostTensors start_;
  HostTensors inputs_;  ///< of the last step
  std::vector<double> ours_, theirs_;
};

void expect_same_course(const Graph& graph, const Reference& reference) { Course(graph, reference).run(); }

constexpr std::int64_t kClasses = 5;

/// Every element that a relu sees may come close to zero, and then other data is drawn: a deep network with a
/// large batch draws a hundred times.
struct Images {
  std::int64_t side;
  std::int64_t batch = 6;
};

void expect_classifier_agrees(const Images& images, const std::function<Value(Net&, Value)>& logits,
                              const Reference& reference) {
  Net net(reference.model);
  const Value image = net.input("image", {images.batch, 3, images.side, images.side});
  const Value label = net.input("label", {images.batch}, DataType::i32);
  net.train(net.cross_entropy(logits(net, image), label), reference.optimizer);
  expect_same_course(std::move(net).finish(), reference);
}

void expect_language_model_agrees(const Shape& tokens, const std::function<Value(Net&, Value)>& logits,
                                  const Reference& reference) {
  Net net(reference.model);
  const Value words = net.input("tokens", tokens, DataType::i32);
  const Value target = net.input("target", tokens, DataType::i32);
  net.train(net.cross_entropy(logits(net, words), target), reference.optimizer);
  expect_same_course(std::move(net).finish(), reference);
}

TEST(Models, MlpAgrees) {
  expect_classifier_agrees({.side = 8},
                           [](Net& net, Value x) {
                             return networks::mlp(net, x, {.hidden = {17, 9}, .classes = kClasses});
                           },
                           {"mlp", {{"sizes", {192, 17, 9, kClasses}}}, kAdam, 1e-3F});
}

TEST(Models, ConvNetAgrees) {
  expect_classifier_agrees(
      {.side = 28},
      [](Net& net, Value x) {
        return networks::convnet(net, x, {.channels = {8, 17, 32}, .classes = kClasses});
      },
      {"convnet", {{"channels", {8, 17, 32}}, {"classes", kClasses}, {"image", {28, 28}}}, kSgd});
}

TEST(Models, ResNetOfBasicBlocksAgrees) {
  const networks::ResNetOptions options{.block = networks::ResNetOptions::Block::basic,
                                        .layers = {1, 2, 1},
                                        .width = 12,
                                        .classes = kClasses,
                                        .small_input = true};
  expect_classifier_agrees({.side = 16}, [&](Net& net, Value x) { return networks::resnet(net, x, options); },
                           {"resnet",
                            {{"block", "basic"},
                             {"layers", {1, 2, 1}},
                             {"width", 12},
                             {"classes", kClasses},
                             {"small_input", true}},
                            kSgd});
}

TEST(Models, ResNetOfBottlenecksAgrees) {
  const networks::ResNetOptions options{.layers = {2, 1, 1}, .width = 8, .classes = kClasses};
  expect_classifier_agrees(
      {.side = 48}, [&](Net& net, Value x) { return networks::resnet(net, x, options); },
      {"resnet",
       {{"block", "bottleneck"}, {"layers", {2, 1, 1}}, {"width", 8}, {"classes", kClasses}},
       kSgd});
}

TEST(Models, VggAgrees) {
  const networks::VggOptions options{
      .convolutions = {1, 1, 2, 1, 1}, .width = 8, .hidden = 24, .classes = kClasses, .dropout = 0};
  const Json layers{8, "M", 16, "M", 32, 32, "M", 64, "M", 64, "M"};
  expect_classifier_agrees(
      {.side = 64}, [&](Net& net, Value x) { return networks::vgg(net, x, options); },
      {"vgg", {{"layers", layers}, {"classifier", {24, 24}}, {"classes", kClasses}, {"pool", 2}}, kSgd});
}

TEST(Models, DenseNetAgrees) {
  const networks::DenseNetOptions options{.blocks = {2, 3, 2, 2}, .growth = 6, .classes = kClasses};
  expect_classifier_agrees(
      {.side = 64}, [&](Net& net, Value x) { return networks::densenet(net, x, options); },
      {"densenet", {{"growth", 6}, {"blocks", {2, 3, 2, 2}}, {"initial", 12}, {"classes", kClasses}}, kSgd});
}

TEST(Models, InceptionAgrees) {
  const networks::InceptionOptions options{
      .blocks = {1, 1, 1}, .narrowing = 8, .classes = kClasses, .dropout = 0};
  expect_classifier_agrees(
      {.side = 107, .batch = few_or_all(3, 6)},
      [&](Net& net, Value x) { return networks::inception4(net, x, options); },
      {"inception4", {{"divisor", 8}, {"blocks", {1, 1, 1}}, {"classes", kClasses}}, kSgd, kCalm});
}

TEST(Models, MobileNetAgrees) {
  expect_classifier_agrees(
      {.side = 64, .batch = few_or_all(4, 6)},
      [](Net& net, Value x) { return networks::mobilenet(net, x, {.width = 8, .classes = kClasses}); },
      {"mobilenet", {{"width", 0.25}, {"classes", kClasses}}, kSgd, kCalm});
}

TEST(Models, LstmAgrees) {
  const networks::LstmOptions options{.vocabulary = 50, .hidden = 20, .layers = 2, .dropout = 0};
  expect_language_model_agrees({7, 4}, [&](Net& net, Value x) { return networks::lstm(net, x, options); },
                               {"lstm", {{"vocab", 50}, {"hidden", 20}, {"layers", 2}}, kSgd, 0.5F});
}

TEST(Models, BertAgrees) {
  const networks::BertOptions options{
      .vocabulary = 50, .positions = 12, .hidden = 24, .layers = 2, .heads = 4, .dropout = 0};
  const Json config{{"vocab", 50}, {"positions", 12}, {"hidden", 24},
                    {"layers", 2}, {"heads", 4},      {"intermediate", 96}};
  expect_language_model_agrees({3, 10}, [&](Net& net, Value x) { return networks::bert(net, x, options); },
                               {"bert", config, kAdam, 1e-3F});
}

TEST(Models, GptAgrees) {
  const networks::GptOptions options{
      .vocabulary = 50, .positions = 12, .hidden = 24, .layers = 2, .heads = 4, .dropout = 0};
  const Json config{{"vocab", 50}, {"positions", 12}, {"hidden", 24}, {"layers", 2}, {"heads", 4}};
  expect_language_model_agrees({3, 10}, [&](Net& net, Value x) { return networks::gpt(net, x, options); },
                               {"gpt2", config, kAdamW, 1e-3F});
}

TEST(Models, DcganAgrees) {
  const networks::DcganOptions options{.latent = 10, .features = 4};
  const Graph graph = zoo::dcgan_graph("dcgan", {.batch = 4, .optimizer = kAdam}, options);
  expect_same_course(graph, {"dcgan", {{"latent", 10}, {"width", 4}}, kAdam, 1e-4F});
}

}  // namespace
}  // namespace terrace::agreement
