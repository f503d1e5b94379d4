// SPDX-License-Identifier: Apache-2.0
// A shard's graph on the disk: of each of its rows, in ascending order, the links with their distances; then
// the rows whose first shard it is, in an order in which neighbours stand side by side.
#pragma once

#include <filesystem>
#include <vector>

#include "ann/choose.hpp"
#include "ann/graph.hpp"
#include "base/input_file.hpp"

namespace terrace::ann {

struct ShardRows {
  std::vector<std::uint32_t> rows;  ///< ascending
  std::vector<bool> primary;        ///< of each of them, whether this is its first shard
};

/// Builds the shard's graph and writes it under a name that appears when it is whole. `rows` are those that
/// the shard's vectors come from; `group`: how many stand side by side. Fails and throws as replacing a file.
Result<void> build_shard(const std::filesystem::path& path, const Rows& vectors, const ShardRows& shard,
                         const HnswOptions& options, std::uint64_t group);

/// Reads such a file from its beginning. Throws EnvironmentError where the disk fails.
class ShardReader {
 public:
  /// Fails where the file is missing or is not of this shard.
  static Result<ShardReader> open(const std::filesystem::path& path, std::uint64_t rows,
                                  std::uint64_t primaries, std::uint32_t width);

  /// The links of the next row, with kNoLink in places that are free, valid until the next call.
  std::span<const Link> next();
  std::vector<std::uint32_t> packed_rows() const;

 private:
  ShardReader(InputFile file, std::uint64_t rows, std::uint64_t primaries, std::uint32_t width)
      : file_(std::move(file)), rows_(rows), primaries_(primaries), width_(width) {}

  InputFile file_;
  std::uint64_t rows_, primaries_;
  std::uint32_t width_;
  std::uint64_t row_ = 0;
  std::vector<Link> buffer_;
  std::size_t at_ = 0;  // in the buffer
};

}  // namespace terrace::ann
