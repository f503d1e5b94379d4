// SPDX-License-Identifier: Apache-2.0
#include "terrace/shape.hpp"

#include "base/check.hpp"

namespace terrace {

Bytes size_of(DataType type) {
  switch (type) {
    case DataType::f32:
    case DataType::i32:
      return {4};
    case DataType::bf16:
    case DataType::f16:
      return {2};
    case DataType::u8:
      return {1};
    case DataType::f64:
    case DataType::i64:
      return {8};
  }
  check(false, "unknown data type");
  return {};
}

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::f32:
      return "f32";
    case DataType::bf16:
      return "bf16";
    case DataType::i32:
      return "i32";
    case DataType::u8:
      return "u8";
    case DataType::f16:
      return "f16";
    case DataType::f64:
      return "f64";
    case DataType::i64:
      return "i64";
  }
  return "?";
}

Shape::Shape(std::initializer_list<std::int64_t> extents) : Shape(extents.begin(), extents.end()) {}

void Shape::push_back(std::int64_t extent) {
  check(rank_ < kMaxRank, "a shape has at most six extents");
  check(extent >= 0, "an extent is not negative");
  extents_[rank_++] = extent;
}

std::int64_t Shape::elements() const { return elements_from(0); }

std::int64_t Shape::elements_from(std::size_t axis) const {
  std::int64_t product = 1;
  for (; axis < rank_; ++axis) product *= extents_[axis];
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

}  // namespace terrace
