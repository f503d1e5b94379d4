#include "backends/cpu/math/heads.hpp"

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

const std::vector<HeadsShape> kShapes = {{0, 2, 3, 4}, {1, 1, 1, 1}, {2, 3, 0, 5},
                                         {2, 5, 3, 7}, {3, 8, 2, 1}, {2, 65, 4, 64}};

std::vector<Floats> split(const Floats& x, const HeadsShape& shape, int parts) {
  const auto size = static_cast<std::size_t>(shape.batch * shape.sequence * shape.heads * shape.width);
  std::vector<Floats> outputs(static_cast<std::size_t>(parts), Floats(size, -7));
  std::vector<float*> pointers;
  for (Floats& output : outputs) pointers.push_back(output.data());
  split_heads(x.data(), shape, pointers);
  return outputs;
}

Floats merge(const std::vector<Floats>& inputs, const HeadsShape& shape) {
  std::vector<const float*> pointers;
  for (const Floats& input : inputs) pointers.push_back(input.data());
  Floats x(inputs.size() * inputs[0].size(), -7);
  merge_heads(pointers, shape, x.data());
  return x;
}

TEST(Heads, SplitPutsEveryElementInItsPlace) {
  for (const HeadsShape& shape : kShapes) {
    for (const int parts : {1, 2, 3}) {
      const auto [batch, sequence, heads, width] = shape;
      const Floats x = random_floats(batch * sequence * heads * width * parts, 1);
      const std::vector<Floats> got = split(x, shape, parts);
      std::size_t at = 0;
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t s = 0; s < sequence; ++s)
          for (int p = 0; p < parts; ++p)
            for (std::int64_t h = 0; h < heads; ++h)
              for (std::int64_t d = 0; d < width; ++d)
                ASSERT_EQ(got[p][((b * heads + h) * sequence + s) * width + d], x[at++]);
    }
  }
}

TEST(Heads, MergeUndoesSplit) {
  for (const HeadsShape& shape : kShapes) {
    for (const int parts : {1, 3}) {
      const Floats x = random_floats(shape.batch * shape.sequence * shape.heads * shape.width * parts, 2);
      EXPECT_TRUE(same_bits(merge(split(x, shape, parts), shape), x));
    }
  }
}

TEST(Heads, DoNotDependOnTheNumberOfThreads) {
  const HeadsShape shape{2, 65, 4, 64};
  const Floats x = random_floats(2 * 65 * 4 * 64 * 3, 3);
  expect_independent_of_threads([&] { return split(x, shape, 3)[2]; });
}

}  // namespace
}  // namespace terrace::math
