#include "backends/cpu/math/embedding.hpp"

#include <stdexcept>

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

const std::vector<EmbeddingShape> kShapes = {{1, 1, 1},    {5, 0, 3},     {5, 7, 0},       {3, 17, 40},
                                             {100, 16, 9}, {50, 65, 777}, {1000, 768, 300}};

Floats forward(const Floats& table, const std::vector<std::int32_t>& indices, const EmbeddingShape& shape) {
  Floats out(static_cast<std::size_t>(shape.count * shape.width), -7);
  embedding_forward(table.data(), indices.data(), shape, out.data());
  return out;
}

Floats backward(const Floats& dout, const std::vector<std::int32_t>& indices, const EmbeddingShape& shape) {
  Floats dtable(static_cast<std::size_t>(shape.vocabulary * shape.width), -7);
  embedding_backward(dout.data(), indices.data(), shape, dtable.data());
  return dtable;
}

TEST(Embedding, GathersRows) {
  at_each_level([] {
    for (const EmbeddingShape& shape : kShapes) {
      const Floats table = random_floats(shape.vocabulary * shape.width, 1);
      const auto indices = random_indices(shape.count, shape.vocabulary, 2);
      const Floats out = forward(table, indices, shape);
      for (std::int64_t i = 0; i < shape.count * shape.width; ++i) {
        ASSERT_EQ(out[i], table[indices[i / shape.width] * shape.width + i % shape.width]);
      }
    }
  });
}

TEST(Embedding, GradientAddsUpTheRowsOfEachIndex) {
  at_each_level([] {
    for (const EmbeddingShape& shape : kShapes) {
      const Floats dout = random_floats(shape.count * shape.width, 3);
      const auto indices = random_indices(shape.count, shape.vocabulary, 4);
      Doubles want(static_cast<std::size_t>(shape.vocabulary * shape.width));
      for (std::int64_t i = 0; i < shape.count * shape.width; ++i) {
        want[indices[i / shape.width] * shape.width + i % shape.width] += dout[i];
      }
      EXPECT_TRUE(all_near(backward(dout, indices, shape), want, 1e-5));
    }
  });
}

TEST(Embedding, GradientDoesNotDependOnTheNumberOfThreads) {
  const EmbeddingShape shape{20, 333, 2000};
  const Floats dout = random_floats(shape.count * shape.width, 5);
  const auto indices = random_indices(shape.count, shape.vocabulary, 6);
  expect_independent_of_threads([&] { return backward(dout, indices, shape); });
}

TEST(Embedding, PartsOfATableGiveWhatTheWholeDoes) {
  at_each_level([] {
    const EmbeddingShape whole{101, 17, 300};
    const Floats table = random_floats(whole.vocabulary * whole.width, 7);
    const Floats dout = random_floats(whole.count * whole.width, 8);
    const auto indices = random_indices(whole.count, whole.vocabulary, 9);
    Floats out(static_cast<std::size_t>(whole.count * whole.width), -7), dtable;
    for (std::int64_t first = 0; first < whole.vocabulary; first += 40) {
      const std::int64_t rows = std::min<std::int64_t>(40, whole.vocabulary - first);
      const EmbeddingShape part{rows, whole.width, whole.count, first, whole.vocabulary};
      embedding_forward(table.data() + first * whole.width, indices.data(), part, out.data(),
                        first == 0 ? OtherRows::cleared : OtherRows::kept);
      if (first == 0) {
        for (std::int64_t i = 0; i < whole.count; ++i) {
          if (indices[i] < rows) continue;
          ASSERT_EQ(out[i * whole.width], 0) << "rows of other parts are zero";
        }
      }
      const Floats more = backward(dout, indices, part);
      dtable.insert(dtable.end(), more.begin(), more.end());
    }
    EXPECT_TRUE(same_bits(out, forward(table, indices, whole)));
    EXPECT_TRUE(same_bits(dtable, backward(dout, indices, whole)));
  });
}

TEST(Embedding, APartRefusesWhatNoPartHasAndPartsThatAreNone) {
  const Floats table(8, 1);
  Floats out(4, -7);
  const auto look_up = [&](std::int32_t index, const EmbeddingShape& shape) {
    const std::vector<std::int32_t> indices = {0, index};
    embedding_forward(table.data(), indices.data(), shape, out.data());
  };
  EXPECT_NO_THROW(look_up(9, {4, 2, 2, 4, 10}));
  EXPECT_THROW(look_up(10, {4, 2, 2, 4, 10}), std::logic_error);
  EXPECT_THROW(look_up(1, {4, 2, 2, 7, 10}), std::logic_error);
  EXPECT_THROW(look_up(1, {4, 2, 2, 1, 0}), std::logic_error);
}

TEST(Embedding, RefusesAnIndexOutsideTheVocabularyBeforeTouchingAnything) {
  const EmbeddingShape shape{4, 2, 3};
  const Floats table(8, 1), dout(6, 1);
  for (const std::int32_t wrong : {4, -1, std::numeric_limits<std::int32_t>::max()}) {
    const std::vector<std::int32_t> indices = {0, 1, wrong};
    Floats out(6, -7), dtable(8, -7);
    EXPECT_THROW(embedding_forward(table.data(), indices.data(), shape, out.data()), std::logic_error);
    EXPECT_THROW(embedding_backward(dout.data(), indices.data(), shape, dtable.data()), std::logic_error);
    EXPECT_EQ(out, Floats(6, -7));
    EXPECT_EQ(dtable, Floats(8, -7));
  }
}

}  // namespace
}  // namespace terrace::math
