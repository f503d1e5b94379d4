// SPDX-License-Identifier: Apache-2.0
// VectorSource: a file of vectors that is read row by row, because it does not fit in memory. Thread-safe.
#pragma once

#include <functional>
#include <span>

#include "ann/npy_header.hpp"
#include "base/input_file.hpp"
#include "terrace/ann.hpp"

namespace terrace::ann {

class VectorSource {
 public:
  /// Fails with one sentence where the file is missing or its size is not what its header says.
  static Result<VectorSource> open(const std::filesystem::path& path);

  std::uint64_t count() const { return matrix_.rows; }
  std::size_t dimension() const { return static_cast<std::size_t>(matrix_.columns); }
  ElementType type() const { return matrix_.type; }
  /// The file's path, size and time of change, so that another one is noticed.
  std::string identity() const;

  /// Reads one row. Throws EnvironmentError where the disk fails. pre: row < count()
  void read(std::uint64_t row, float* out) const;
  using Take = std::function<void(std::uint64_t first, std::span<const float> values)>;
  /// Calls `take` with all rows in order, some at a time.
  void read_all(const Take& take) const { read_first(count(), take); }
  /// The same with the first `rows` of them. pre: rows <= count()
  void read_first(std::uint64_t rows, const Take& take) const;

 private:
  VectorSource(InputFile file, Matrix matrix, std::uint64_t start, std::uint64_t skip)
      : file_(std::move(file)), matrix_(matrix), start_(start), skip_(skip) {}
  std::uint64_t stride() const { return skip_ + matrix_.columns * size_of(matrix_.type); }
  void convert(const std::byte* rows, std::uint64_t count, float* out) const;

  InputFile file_;
  Matrix matrix_;
  std::uint64_t start_;  // where the first row begins
  std::uint64_t skip_;   // bytes before each row's values
};

}  // namespace terrace::ann
