// SPDX-License-Identifier: Apache-2.0
// Asking the zoo for what it does not have.
#include <gtest/gtest.h>

#include <set>

#include "terrace/models.hpp"

namespace terrace {
namespace {

std::string complaint(std::string_view name, const ModelOptions& options = {}) {
  const auto built = build_model(name, options);
  if (built) return "";
  EXPECT_EQ(built.error().code, ErrorCode::invalid_argument);
  return built.error().message;
}

TEST(Zoo, ListsEveryModelOnce) {
  std::set<std::string_view> names;
  for (const ModelInfo& info : models()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.what.empty() || info.source.empty()) << info.name;
    EXPECT_GT(info.batch, 0) << info.name;
  }
  for (const char* name :
       {"alexnet",   "vgg16",     "vgg19",     "vgg116",  "vgg416",      "resnet32",   "resnet50",
        "resnet152", "resnet200", "mobilenet", "dcgan",   "densenet264", "inception4", "lstm",
        "gpt2",      "gpt2-xl",   "mlp",       "convnet", "gpt2-medium", "bert-large"}) {
    EXPECT_EQ(names.count(name), 1U) << name;
  }
}

TEST(Zoo, SuggestsWhatAMisspeltNameMayHaveMeant) {
  EXPECT_EQ(complaint("vgg16s"), "there is no model 'vgg16s': did you mean vgg16, vgg19 or vgg116?");
  EXPECT_EQ(complaint("inceptoin4"), "there is no model 'inceptoin4': did you mean inception4?");
  EXPECT_EQ(complaint("bert"), "there is no model 'bert': did you mean bert-large?");
  EXPECT_EQ(complaint("gpt2-small"), "there is no model 'gpt2-small': did you mean gpt2?");
  EXPECT_NE(complaint("zebra").find("the models are mlp, convnet"), std::string::npos);
  EXPECT_NE(complaint("").find("the models are"), std::string::npos);
}

TEST(Zoo, RefusesABatchThatMakesNoGraph) {
  EXPECT_EQ(complaint("mlp", {.batch = 0}), "a batch of 0 for mlp makes no graph: choose 1 to 1048576");
  EXPECT_NE(complaint("mlp", {.batch = -3}).find("a batch of -3"), std::string::npos);
  EXPECT_NE(complaint("vgg416", {.batch = std::int64_t{1} << 60}), "");
  EXPECT_EQ(complaint("mlp", {.batch = 1 << 20}), "");
}

TEST(Zoo, RefusesPartsThatDoNotDivideTheBatch) {
  EXPECT_EQ(complaint("mlp", {.batch = 10, .micro_batches = 3}),
            "a batch of 10 for mlp cannot be split into 3 equal parts: choose a divisor of 10");
  EXPECT_NE(complaint("mlp", {.batch = 10, .micro_batches = 0}), "");
  EXPECT_NE(complaint("mlp", {.batch = 10, .micro_batches = 20}), "");
}

TEST(Zoo, RefusesSequencesThatDoNotFit) {
  EXPECT_EQ(complaint("gpt2", {.sequence = 1025}), "a sequence of 1025 does not fit gpt2: choose 1 to 1024");
  EXPECT_NE(complaint("lstm", {.sequence = 0}), "");
  EXPECT_EQ(complaint("mlp", {.sequence = 5}), "mlp has no sequence: leave its length out");
}

TEST(Zoo, InfersOnlyWhatClassifiesImages) {
  const auto gpt = build_inference("gpt2", {});
  ASSERT_FALSE(gpt);
  EXPECT_EQ(gpt.error().code, ErrorCode::unsupported);
  EXPECT_NE(gpt.error().message.find("gpt2 classifies no images"), std::string::npos);
  EXPECT_FALSE(build_inference("resnet31", {}));
  EXPECT_FALSE(build_inference("resnet32", {.batch = 0}));
}

}  // namespace
}  // namespace terrace
