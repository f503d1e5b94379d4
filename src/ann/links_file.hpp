// SPDX-License-Identifier: Apache-2.0
// LinksFile: the links of the lowest layer on the disk, by row, while an index is built that does not fit in
// memory. It is read from front to back; single links are added in place. One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace::ann {

class LinksFile {
 public:
  /// Fails with a sentence where it is missing or of another size.
  static Result<LinksFile> open(const std::filesystem::path& path, std::uint64_t rows, std::uint32_t width);
  LinksFile(LinksFile&& other) noexcept;
  LinksFile& operator=(LinksFile&&) = delete;
  ~LinksFile();

  std::uint64_t rows() const { return rows_; }
  std::uint32_t width() const { return width_; }

  // All of these throw EnvironmentError where the disk fails.
  /// Calls `take` with the links of every row, those that are there alone.
  void for_each(
      const std::function<void(std::uint32_t row, std::span<const std::uint32_t> links)>& take) const;
  /// The places of rows `first` to `first + count`, free ones included.
  std::vector<std::uint32_t> read(std::uint64_t first, std::uint64_t count) const;
  /// Adds a link in a free place; returns whether there is one.
  bool add(std::uint32_t from, std::uint32_t to);

 private:
  LinksFile(std::filesystem::path path, int descriptor, std::uint64_t rows, std::uint32_t width)
      : path_(std::move(path)), descriptor_(descriptor), rows_(rows), width_(width) {}
  [[noreturn]] void fail(const char* what, std::uint64_t offset, int cause) const;

  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t rows_;
  std::uint32_t width_;
};

/// Of each row, with how many others it has a link in either direction. Reads the file once for each part of
/// it that `memory` holds.
std::vector<std::uint32_t> undirected_degrees(const LinksFile& links, Bytes memory);

/// Adds links, where there is room, until every row that `left_out` does not mark can be reached from the
/// `start` rows. Returns how many it added.
std::uint64_t connect_rows(LinksFile& links, std::span<const std::uint32_t> start,
                           const std::vector<bool>& left_out);

}  // namespace terrace::ann
