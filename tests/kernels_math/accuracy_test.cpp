// SPDX-License-Identifier: Apache-2.0
#include "math/accuracy.hpp"

#include <stdexcept>

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

using Labels = std::vector<std::int32_t>;

TEST(Accuracy, CountsRowsWhoseGreatestLogitIsLabelled) {
  at_each_level([] {
    for (const Rows shape :
         {Rows{0, 3}, Rows{1, 1}, Rows{50, 2}, Rows{300, 17}, Rows{100, 1000}, Rows{30000, 3}}) {
      // Whole numbers in a small range, so that many rows have equal greatest logits.
      Floats logits = random_floats(shape.rows * shape.columns, 1, 0, 5);
      for (float& value : logits) value = std::floor(value);
      Labels labels = random_indices(shape.rows, std::min<std::int64_t>(shape.columns, 4), 2);
      for (std::size_t r = 3; r < labels.size(); r += 10) labels[r] = kIgnoredLabel;
      std::int64_t want = 0;
      for (std::int64_t r = 0; r < shape.rows; ++r) {
        const auto row = logits.begin() + r * shape.columns;
        want += std::max_element(row, row + shape.columns) - row == labels[r];
      }
      EXPECT_EQ(count_correct(logits.data(), labels.data(), shape), want);
    }
  });
}

TEST(Accuracy, TakesTheFirstOfEqualLogits) {
  const Floats logits = {1, 1, 0, 0, 1, 1};
  EXPECT_EQ(count_correct(logits.data(), Labels{0, 1}.data(), {2, 3}), 2);
  EXPECT_EQ(count_correct(logits.data(), Labels{1, 2}.data(), {2, 3}), 0);
}

TEST(Accuracy, NeverCountsNaN) {
  const Floats logits(3, std::numeric_limits<float>::quiet_NaN());
  for (const std::int32_t label : {0, 1, 2}) EXPECT_EQ(count_correct(logits.data(), &label, {1, 3}), 0);
}

TEST(Accuracy, RefusesALabelThatIsNoColumn) {
  const Floats logits(3, 1);
  for (const std::int32_t label : {3, -1}) {
    EXPECT_THROW(count_correct(logits.data(), &label, {1, 3}), std::logic_error);
  }
}

}  // namespace
}  // namespace terrace::math
