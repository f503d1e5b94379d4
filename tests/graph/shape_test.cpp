#include "terrace/shape.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "graph/checked_size.hpp"
#include "nn/operation_table.hpp"
#include "terrace/operation.hpp"

namespace terrace {
namespace {

TEST(Shape, MultipliesItsExtents) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3U);
  EXPECT_EQ(shape.elements(), 24);
  EXPECT_EQ(shape.elements_from(1), 12);
  EXPECT_EQ(shape.elements_from(3), 1);
  EXPECT_EQ(shape.back(), 4);
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{5, 0}).elements(), 0);
}

TEST(Shape, ComparesExtentsAndRank) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 0}));
  const std::vector<std::int64_t> extents{2, 3};
  EXPECT_EQ((Shape{2, 3}), Shape(extents.begin(), extents.end()));
}

TEST(Shape, PrintsItself) {
  EXPECT_EQ(to_string(Shape{32, 3, 224}), "[32, 3, 224]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(Shape, RefusesNegativeAndTooManyExtents) {
  EXPECT_THROW((Shape{1, -1}), std::logic_error);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), std::logic_error);
}

TEST(Shape, SizeIsThatOfAllElements) {
  EXPECT_EQ(checked_size({2, 3}, DataType::f32), Bytes{24});
  EXPECT_EQ(checked_size({2, 3}, DataType::bf16), Bytes{12});
  EXPECT_EQ(checked_size({2, 3}, DataType::i32), Bytes{24});
  EXPECT_EQ(checked_size({2, 3}, DataType::u8), Bytes{6});
  EXPECT_EQ(checked_size({2, 3}, DataType::f16), Bytes{12});
  EXPECT_EQ(checked_size({2, 3}, DataType::f64), Bytes{48});
  EXPECT_EQ(checked_size({2, 3}, DataType::i64), Bytes{48});
  EXPECT_EQ(checked_size({0, 3}, DataType::f32), Bytes{0});
}

TEST(Shape, SizeIsRefusedWhereItDoesNotFit) {
  const std::int64_t large = std::int64_t{1} << 61;
  EXPECT_EQ(checked_size({large}, DataType::u8), Bytes{std::uint64_t{1} << 61});
  EXPECT_EQ(checked_size({large}, DataType::f32), std::nullopt);
  EXPECT_EQ(checked_size({large, 4}, DataType::u8), std::nullopt);
  EXPECT_EQ(checked_size({0, large, 4}, DataType::u8), std::nullopt);
  Shape negative{1};
  negative[0] = -1;
  EXPECT_EQ(checked_size(negative, DataType::u8), std::nullopt);
}

TEST(Operation, NamesAreReadBack) {
  for (std::size_t i = 0; i < kOperations; ++i) {
    const auto operation = static_cast<Operation>(i);
    EXPECT_EQ(parse_operation(to_string(operation)), operation);
  }
  EXPECT_EQ(parse_operation("conv3d"), std::nullopt);
  EXPECT_EQ(to_string(Operation::conv2d_backward_weights), "conv2d_backward_weights");
  EXPECT_EQ(to_string(Operation::adam), "adam");
}

TEST(Signature, CountsRequiredOptionalAndRepeatedOperands) {
  EXPECT_FALSE(accepts("x weight bias?", 1));
  EXPECT_TRUE(accepts("x weight bias?", 2));
  EXPECT_TRUE(accepts("x weight bias?", 3));
  EXPECT_FALSE(accepts("x weight bias?", 4));
  EXPECT_FALSE(accepts("x x*", 0));
  EXPECT_TRUE(accepts("x x*", 1));
  EXPECT_TRUE(accepts("x x*", 100));
  EXPECT_TRUE(accepts("any*", 0));
}

}  // namespace
}  // namespace terrace
