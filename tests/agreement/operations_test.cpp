// SPDX-License-Identifier: Apache-2.0
// Operations that work element by element, by rows, or on whole matrices.
#include <gtest/gtest.h>

#include "agreement/agreement.hpp"
#include "agreement/draw.hpp"

namespace terrace::agreement {
namespace {

using Values = std::vector<Value>;

/// Every operation on one image that keeps its shape.
const std::pair<const char*, std::function<Value(Net&, Value)>> kPointwise[] = {
    {"relu", [](Net& net, Value x) { return net.relu(x); }},
    {"leaky_relu", [](Net& net, Value x) { return net.leaky_relu(x, 0.2F); }},
    {"gelu", [](Net& net, Value x) { return net.gelu(x); }},
    {"gelu by tanh", [](Net& net, Value x) { return net.gelu(x, {.tanh_approximation = true}); }},
    {"tanh", [](Net& net, Value x) { return net.tanh(x); }},
    {"sigmoid", [](Net& net, Value x) { return net.sigmoid(x); }},
};

TEST(Pointwise, AgreesInEverySurrounding) {
  std::uint64_t seed = 0;
  for (const auto& [name, apply] : kPointwise) {
    for (const Surroundings around : kSurroundings) {
      SCOPED_TRACE(name);
      const Shape image{2, seed % 2 == 0 ? 17 : 3, 5, 7};
      const auto build = [&, &apply = apply](Net& net) -> Values {
        return {leaving(net, apply(net, arriving(net, image, around)), around)};
      };
      expect_agreement(build, ++seed);
    }
  }
}

TEST(Pointwise, AgreesOnRows) {
  std::uint64_t seed = 0;
  for (const auto& [name, apply] : kPointwise) {
    SCOPED_TRACE(name);
    const auto build = [&, &apply = apply](Net& net) -> Values {
      return {apply(net, net.linear("fc", given(net, {3, 5, 7}), 13))};
    };
    expect_agreement(build, ++seed);
  }
}

/// The random numbers are ours; that forward and backward drop the same elements is what counts.
TEST(Dropout, DropsTheSameForwardAndBackward) {
  std::uint64_t seed = 0;
  for (const Surroundings around : kSurroundings) {
    const auto build = [&](Net& net) -> Values {
      const Value y = net.dropout(arriving(net, {2, 17, 5, 7}, around), 0.3F);
      return {leaving(net, y, around), y};
    };
    expect_agreement(build, ++seed);
  }
}

TEST(Dropout, AgreesBetweenAnImageAndRows) {
  const auto build = [](Net& net) -> Values {
    const Value y = net.dropout(arriving(net, {2, 17, 3, 3}, {true, false}), 0.5F);
    return {y, net.linear("fc", net.flatten(y), 5)};
  };
  expect_agreement(build, 1);
}

TEST(Sum, AgreesForOperandsThatLieDifferently) {
  std::uint64_t seed = 0;
  for (const bool relu : {false, true}) {
    for (const Surroundings left : kSurroundings) {
      for (const bool right : {false, true}) {
        const Shape image{2, 17, 5, 5};
        const auto build = [&](Net& net) -> Values {
          const Value a = arriving(net, image, left, "a"), b = arriving(net, image, {right, false}, "b");
          return {leaving(net, net.add(a, b, {.relu = relu}), left)};
        };
        expect_agreement(build, ++seed);
      }
    }
  }
}

TEST(Product, AgreesForOperandsThatLieDifferently) {
  std::uint64_t seed = 0;
  for (const Surroundings left : kSurroundings) {
    for (const bool right : {false, true}) {
      const Shape image{2, 30, 5, 5};
      const auto build = [&](Net& net) -> Values {
        const Value a = arriving(net, image, left, "a"), b = arriving(net, image, {right, false}, "b");
        return {leaving(net, net.mul(a, b), left)};
      };
      expect_agreement(build, ++seed);
    }
  }
}

TEST(Sum, AgreesForATensorAndItself) {
  expect_agreement([](Net& net) -> Values { return {net.add(given(net, {3, 5}), given(net, {3, 5}))}; }, 1);
  expect_agreement([](Net& net) -> Values { return {net.mul(given(net, {3, 5}), given(net, {3, 5}))}; }, 2);
}

/// Sizes of parts: none a whole number of blocks, all of them, or some.
TEST(Concat, AgreesForAnyParts) {
  const std::vector<std::vector<std::int64_t>> kSizes{{17, 3},   {16, 32}, {16, 3, 30},
                                                      {1, 1, 1}, {5},      {32, 16, 8}};
  std::uint64_t seed = 0;
  for (const auto& sizes : kSizes) {
    for (const Surroundings around : kSurroundings) {
      const auto build = [&](Net& net) -> Values {
        Values parts;
        for (const std::int64_t channels : sizes) {
          // The last part lies differently from the others.
          const bool before = parts.size() + 1 == sizes.size() ? around.before : !around.before;
          parts.push_back(
              arriving(net, {2, channels, 5, 3}, {before, false}, "x" + std::to_string(parts.size())));
        }
        return {leaving(net, net.concat(parts), around)};
      };
      expect_agreement(build, ++seed);
    }
  }
}

TEST(Concat, AgreesAlongAnyAxis) {
  for (const std::int64_t axis : {0, 1, 2, 3}) {
    for (const std::int64_t channels : {16, 17}) {
      const auto build = [&](Net& net) -> Values {
        Shape second{2, channels, 5, 3};
        second[static_cast<std::size_t>(axis)] = 16;
        const Value a = arriving(net, {2, channels, 5, 3}, {true, false}, "a");
        return {net.concat({a, arriving(net, second, {true, false}, "b")}, axis)};
      };
      expect_agreement(build, static_cast<std::uint64_t>(axis + channels));
    }
  }
}

TEST(Concat, AgreesForATensorAndItself) {
  const auto build = [](Net& net) -> Values {
    const Value x = arriving(net, {2, 16, 3, 3}, {true, false});
    return {net.concat({x, x})};
  };
  expect_agreement(build, 1);
}

Value norm(Net& net, Value x, const NormAttributes& options) {
  // Made ahead of the normalisation, which would start with ones and zeros.
  net.parameter("norm.weight", {x.shape[1]}, {Initial::Kind::uniform, 0.5F, 1.5F});
  net.parameter("norm.bias", {x.shape[1]}, {Initial::Kind::normal, 0, 1});
  return net.batch_norm("norm", x, options);
}

TEST(BatchNorm, AgreesInEverySurrounding) {
  std::uint64_t seed = 0;
  for (const std::int64_t channels : {1, 3, 16, 17, 30}) {
    for (const Surroundings around : kSurroundings) {
      for (const bool relu : {false, true}) {
        const NormAttributes options{relu ? 1e-3F : 1e-5F, relu ? 0.3F : 0.1F, relu};
        const auto build = [&](Net& net) -> Values {
          return {leaving(net, norm(net, arriving(net, {3, channels, 5, 7}, around), options), around)};
        };
        expect_agreement(build, ++seed);
      }
    }
  }
}

TEST(BatchNorm, OfInferenceAgrees) {
  std::uint64_t seed = 0;
  for (const Surroundings around : kSurroundings) {
    for (const bool relu : {false, true}) {
      const auto build = [&](Net& net) -> Values {
        return {leaving(net, norm(net, arriving(net, {2, 17, 5, 7}, around), {.relu = relu}), around)};
      };
      expect_agreement(build, ++seed, kTolerance, Net::Mode::inference);
    }
  }
}

TEST(LayerNorm, Agrees) {
  Draw draw(5);
  for (int i = 0; i < 8 * stress_factor(); ++i) {
    const Shape shape{draw.between(1, 3), draw.extent(), draw.of({2, 5, 16, 17, 30, 64})};
    const bool behind = draw.coin();
    const auto build = [&](Net& net) -> Values {
      net.parameter("norm.weight", {shape[2]}, {Initial::Kind::uniform, 0.5F, 1.5F});
      const Value x = behind ? net.gelu(given(net, shape)) : given(net, shape);
      return {net.layer_norm("norm", x, 1e-3F)};
    };
    expect_agreement(build, static_cast<std::uint64_t>(i));
  }
}

TEST(Softmax, Agrees) {
  std::uint64_t seed = 0;
  for (const bool causal : {false, true}) {
    for (const float scale : {1.0F, 0.3F}) {
      for (const Shape& shape : {Shape{3, 5}, Shape{2, 3, 7, 7}, Shape{1, 1, 13, 17}, Shape{2, 1}}) {
        const auto build = [&](Net& net) -> Values {
          return {net.softmax(given(net, shape), {.scale = scale, .causal = causal})};
        };
        expect_agreement(build, ++seed);
      }
    }
  }
}

TEST(Linear, AgreesForAnySizes) {
  Draw draw(6);
  for (int i = 0; i < 20 * stress_factor(); ++i) {
    const std::int64_t features = draw.of({1, 3, 16, 17, 30, 65}), outputs = draw.of({1, 3, 16, 17, 30, 65});
    const Shape shape =
        draw.coin() ? Shape{draw.of({1, 5, 16}), features} : Shape{3, draw.extent(), features};
    const bool bias = draw.coin(), relu = draw.coin();
    const auto build = [&](Net& net) -> Values {
      const Value y = net.linear("fc", given(net, shape), outputs, {.bias = bias, .initial = {}});
      return {relu ? net.relu(y) : y};
    };
    expect_agreement(build, static_cast<std::uint64_t>(i));
  }
}

TEST(Matmul, AgreesForAnyTranspose) {
  std::uint64_t seed = 0;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const Shape& lead : {Shape{}, Shape{3}, Shape{2, 3}}) {
        const auto shaped = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
          Shape shape = lead;
          shape.push_back(transposed ? columns : rows);
          shape.push_back(transposed ? rows : columns);
          return shape;
        };
        const auto build = [&](Net& net) -> Values {
          const Value a = given(net, shaped(5, 7, ta), "a"), b = given(net, shaped(7, 17, tb), "b");
          return {net.matmul(a, b, {.transpose_a = ta, .transpose_b = tb, .scale = tb ? 0.5F : 1.0F})};
        };
        expect_agreement(build, ++seed);
      }
    }
  }
}

TEST(Matmul, AgreesForATensorAndItself) {
  const auto build = [](Net& net) -> Values {
    const Value x = given(net, {2, 5, 7});
    return {net.matmul(x, x, {.transpose_b = true})};
  };
  expect_agreement(build, 1);
}

TEST(Heads, SplitAndMergedAgree) {
  std::uint64_t seed = 0;
  for (const std::int64_t parts : {1, 3}) {
    for (const std::int64_t heads : {1, 2, 5}) {
      const auto build = [&](Net& net) -> Values {
        const Value x = given(net, {2, 7, parts * heads * 3});
        Values outputs = net.split_heads(x, {.parts = parts, .heads = heads});
        outputs.push_back(net.merge_heads(net.tanh(outputs.back()), heads));
        return outputs;
      };
      expect_agreement(build, ++seed);
    }
  }
}

/// More places than rows, so that rows are taken several times and some never.
TEST(Embedding, AgreesForRepeatedIndices) {
  for (const std::int64_t features : {1, 17, 32}) {
    const auto build = [&](Net& net) -> Values {
      const Value indices = net.input("indices", {3, 7}, DataType::i32);
      const Value places = net.positions("places", {3, 7}, 7);
      return {net.add(net.embedding("words", indices, 13, features),
                      net.embedding("places", places, 9, features))};
    };
    expect_agreement(build, static_cast<std::uint64_t>(features));
  }
}

TEST(Lstm, AgreesForAnySizes) {
  Draw draw(7);
  for (int i = 0; i < 8 * stress_factor(); ++i) {
    const std::int64_t hidden = draw.of({1, 5, 16, 17});
    const Shape shape{draw.of({1, 2, 7}), draw.between(1, 3), draw.of({1, 3, 16, 17})};
    const auto build = [&](Net& net) -> Values {
      const Value first = net.lstm("first", given(net, shape), hidden);
      return {first, net.lstm("second", first, 5)};
    };
    expect_agreement(build, static_cast<std::uint64_t>(i));
  }
}

TEST(Loss, CrossEntropyAgrees) {
  std::uint64_t seed = 0;
  for (const Shape& shape : {Shape{1, 3}, Shape{13, 17}, Shape{64, 1000}}) {
    const auto build = [&](Net& net) -> Values {
      const Value label = net.input("label", {shape[0]}, DataType::i32);
      return {net.cross_entropy(given(net, shape), label, 0.5F)};
    };
    expect_agreement(build, ++seed);
  }
}

TEST(Loss, BinaryCrossEntropyAgrees) {
  for (const float target : {0.0F, 0.3F, 1.0F}) {
    const auto build = [&](Net& net) -> Values {
      const Value x = arriving(net, {2, 17, 3, 3}, {true, false});
      return {net.binary_cross_entropy(x, target, 2), net.binary_cross_entropy(given(net, {7}, "z"), target)};
    };
    expect_agreement(build, 1);
  }
}

}  // namespace
}  // namespace terrace::agreement
