// A tensor's shape is its extents, outermost first, and a type for its elements. Both are plain values.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "terrace/bytes.hpp"

namespace terrace {

enum class DataType : std::uint8_t { f32, bf16, i32, u8, f16, f64, i64 };

Bytes size_of(DataType type);
std::string_view to_string(DataType type);

/// A shape has up to six extents, none of them negative. They are stored without an allocation, because a
/// graph holds tens of thousands of shapes.
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 6;

  Shape() = default;
  /// pre: at most kMaxRank extents, none negative
  Shape(std::initializer_list<std::int64_t> extents);
  template <class Iterator>
  Shape(Iterator begin, Iterator end) {
    for (; begin != end; ++begin) push_back(*begin);
  }

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t axis) const { return extents_[axis]; }
  std::int64_t& operator[](std::size_t axis) { return extents_[axis]; }
  std::int64_t back() const { return extents_[rank_ - 1]; }
  const std::int64_t* begin() const { return extents_.data(); }
  const std::int64_t* end() const { return extents_.data() + rank_; }
  /// pre: rank() < kMaxRank, extent not negative
  void push_back(std::int64_t extent);

  /// Returns the product of the extents, which is 1 for a scalar.
  std::int64_t elements() const;
  /// Returns the product of the extents of `axis` and of all axes after it.
  std::int64_t elements_from(std::size_t axis) const;

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  std::uint8_t rank_ = 0;
};

/// Prints a shape like `[32, 3, 224, 224]`.
std::string to_string(const Shape& shape);

}  // namespace terrace
