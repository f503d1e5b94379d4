// SPDX-License-Identifier: Apache-2.0
// Operations in company: one tensor with several users, weights used twice, blocks of published networks.
#include <gtest/gtest.h>

#include "agreement/agreement.hpp"
#include "agreement/draw.hpp"

namespace terrace::agreement {
namespace {

using Values = std::vector<Value>;

Net::Conv square(std::int64_t kernel, std::int64_t stride = 1) {
  return {.kernel = {kernel, kernel},
          .stride = {stride, stride},
          .padding = {kernel / 2, kernel / 2},
          .bias = false,
          .initial = {}};
}

TEST(Contexts, FlattenedImagesAgree) {
  for (const std::int64_t channels : {3, 16, 17, 30}) {
    for (const std::int64_t extent : {1, 5}) {
      const auto build = [&](Net& net) -> Values {
        const Value x = arriving(net, {2, channels, extent, extent}, {true, false});
        return {net.linear("fc", net.flatten(net.relu(x)), 7)};
      };
      expect_agreement(build, static_cast<std::uint64_t>(channels + extent));
    }
  }
}

TEST(Contexts, AveragedImagesAgree) {
  for (const std::int64_t channels : {16, 17}) {
    const auto build = [&](Net& net) -> Values {
      const Value x = arriving(net, {2, channels, 7, 7}, {true, false});
      return {net.linear("fc", net.flatten(net.global_avg_pool2d(x)), 5)};
    };
    expect_agreement(build, static_cast<std::uint64_t>(channels));
  }
}

TEST(Contexts, ATensorWithManyUsersAgrees) {
  const auto build = [](Net& net) -> Values {
    const Value x = arriving(net, {2, 17, 7, 7}, {true, false});
    const Value pooled = net.max_pool2d(x, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}});
    const Value conv = net.conv2d("conv", x, 17, square(3));
    const Value sum = net.add(net.add(conv, pooled), x);
    return {net.mul(sum, net.tanh(x)), net.linear("fc", net.flatten(x), 3)};
  };
  expect_agreement(build, 1);
}

TEST(Contexts, AResidualBlockAgrees) {
  for (const std::int64_t width : {16, 17}) {
    const auto build = [&](Net& net) -> Values {
      const Value x = arriving(net, {4, width, 7, 7}, {true, false});
      Value y = net.batch_norm("bn1", net.conv2d("conv1", x, width, square(3)), {.relu = true});
      y = net.batch_norm("bn2", net.conv2d("conv2", y, width, square(3)));
      y = net.add(y, x, {.relu = true});
      const Value next = net.batch_norm("bn3", net.conv2d("conv3", y, 2 * width, square(1, 2)));
      return {net.add(next, net.conv2d("conv4", y, 2 * width, square(3, 2)), {.relu = true})};
    };
    expect_agreement(build, static_cast<std::uint64_t>(width));
  }
}

TEST(Contexts, ADenseBlockAgrees) {
  const auto build = [](Net& net) -> Values {
    Value x = arriving(net, {4, 10, 7, 7}, {true, false});
    for (const char* name : {"1", "2", "3"}) {
      const auto scope = net.scope(name);
      const Value y = net.batch_norm("norm", x, {.relu = true});
      x = net.concat({x, net.conv2d("conv", y, 6, square(3))});
    }
    return {net.avg_pool2d(x, {.kernel = {2, 2}})};
  };
  expect_agreement(build, 1);
}

/// Gradients of every use are added, in whatever layout each of them lies.
TEST(Contexts, WeightsUsedTwiceAgree) {
  for (const std::int64_t groups : {1, 4}) {
    const auto build = [&](Net& net) -> Values {
      Net::Conv conv = square(3);
      conv.groups = groups;
      const Value once = net.conv2d("conv", given(net, {2, 16, 7, 7}), 16, conv);
      const Value twice = net.conv2d("conv", net.tanh(once), 16, conv);
      const Value up = net.conv_transpose2d("up", twice, 16, conv);
      return {net.conv_transpose2d("up", net.tanh(up), 16, conv)};
    };
    expect_agreement(build, static_cast<std::uint64_t>(groups));
  }
}

TEST(Contexts, RecurrentWeightsUsedTwiceAgree) {
  const auto build = [](Net& net) -> Values {
    return {net.lstm("lstm", net.lstm("lstm", given(net, {3, 2, 5}), 5), 5)};
  };
  expect_agreement(build, 1);
}

/// The table of words is read by rows and as a matrix.
TEST(Contexts, TiedEmbeddingsAgree) {
  const auto build = [](Net& net) -> Values {
    const Value tokens = net.input("tokens", {2, 5}, DataType::i32);
    const Value x = net.embedding("words", tokens, 30, 17);
    const Value table = net.parameter("words.weight", {30, 17}, {});
    const Value logits = net.reshape(net.linear_with(net.tanh(x), table), {10, 30});
    return {net.cross_entropy(logits, net.input("next", {10}, DataType::i32))};
  };
  expect_agreement(build, 1);
}

TEST(Contexts, AttentionAgrees) {
  const auto build = [](Net& net) -> Values {
    const Value x = net.layer_norm("norm", given(net, {2, 7, 12}));
    const Values parts = net.split_heads(net.linear("qkv", x, 36), {.parts = 3, .heads = 4});
    Value scores = net.matmul(parts[0], parts[1], {.transpose_b = true, .scale = 0.5F});
    scores = net.softmax(scores, {.causal = true});
    return {net.linear("out", net.merge_heads(net.matmul(scores, parts[2]), 4), 12)};
  };
  expect_agreement(build, 1);
}

/// An image is both a result and overwritten as early as possible.
TEST(Contexts, ResultsSurviveWorkInPlace) {
  const auto build = [](Net& net) -> Values {
    const Value x = arriving(net, {2, 17, 5, 5}, {true, false});
    const Value a = net.relu(x), b = net.tanh(a), c = net.add(b, b);
    return {a, b, c};
  };
  expect_agreement(build, 1);
}

}  // namespace
}  // namespace terrace::agreement
