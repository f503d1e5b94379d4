// SPDX-License-Identifier: Apache-2.0
#include "ann/checked_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/replace_file.hpp"
#include "terrace/error.hpp"

namespace terrace::ann {
namespace {

Error refuse(const InputFile& file, const std::string& reason) {
  return {ErrorCode::invalid_argument,
          fmt::format("{} {}: copy the index again, or build it again", file.path().native(), reason)};
}

/// Takes portions of any size and keeps the checksum of every piece.
class Checksums {
 public:
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min<std::size_t>(bytes.size(), kCheckedPiece.count - in_piece_));
      piece_ = checksum(part, piece_);
      in_piece_ += part.size();
      bytes = bytes.subspan(part.size());
      if (in_piece_ == kCheckedPiece.count) close();
    }
  }
  std::vector<std::uint32_t> finish() {
    if (in_piece_ > 0) close();
    return std::move(checksums_);
  }

 private:
  void close() {
    checksums_.push_back(std::exchange(piece_, 0));
    in_piece_ = 0;
  }
  std::uint32_t piece_ = 0;
  std::size_t in_piece_ = 0;
  std::vector<std::uint32_t> checksums_;
};

Error damaged(const InputFile& file, std::uint64_t offset, std::size_t size) {
  return refuse(file, fmt::format("is damaged between bytes {} and {}", offset, offset + size));
}

}  // namespace

void read_at(const InputFile& file, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = pread(file.descriptor(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int cause = got < 0 ? errno : 0;
      throw EnvironmentError(
          fmt::format("reading {} failed at byte {} ({}): check the disk", file.path().native(), offset,
                      cause != 0 ? std::strerror(cause) : "it was shortened meanwhile"),
          {"", file.path().native(), offset, cause});
    }
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

Result<InputFile> open_sized(const std::filesystem::path& path, Bytes size) {
  auto file = InputFile::open(path);
  if (!file) return file;
  if (file->size() != size)
    return refuse(*file,
                  fmt::format("has {} bytes where its manifest says {}", file->size().count, size.count));
  return file;
}

Result<void> read_checked(const InputFile& file, const std::vector<std::uint32_t>& checksums,
                          const std::function<void(std::uint64_t, std::span<const std::byte>)>& take) {
  check(checksums.size() == pieces_in(file.size()), "a checksum for each piece");
  std::vector<std::byte> memory(std::min(file.size(), kCheckedPiece).count);
  for (std::uint64_t i = 0; i < checksums.size(); ++i) {
    const std::uint64_t offset = i * kCheckedPiece.count;
    const auto piece =
        std::span(memory).first(std::min<std::uint64_t>(kCheckedPiece.count, file.size().count - offset));
    read_at(file, offset, piece);
    if (checksum(piece) != checksums[i]) return damaged(file, offset, piece.size());
    take(offset, piece);
  }
  return {};
}

Result<void> read_checked_into(const InputFile& file, const std::vector<std::uint32_t>& checksums,
                               std::span<const std::span<std::byte>> places) {
  check(checksums.size() == pieces_in(file.size()), "a checksum for each piece");
  std::uint64_t offset = 0;
  std::size_t piece = 0, in_piece = 0;
  std::uint32_t sum = 0;
  for (std::span<std::byte> place : places) {
    while (!place.empty()) {
      const auto part = place.first(std::min<std::size_t>(place.size(), kCheckedPiece.count - in_piece));
      read_at(file, offset, part);
      sum = checksum(part, sum);
      in_piece += part.size(), offset += part.size();
      place = place.subspan(part.size());
      if (in_piece < kCheckedPiece.count && offset < file.size().count) continue;
      if (sum != checksums[piece++]) return damaged(file, offset - in_piece, in_piece);
      in_piece = 0, sum = 0;
    }
  }
  check(offset == file.size().count, "the places have the size of the file");
  return {};
}

Result<std::vector<std::uint32_t>> write_checked(const std::filesystem::path& path, Bytes size,
                                                 const std::function<std::span<const std::byte>()>& next) {
  Checksums checksums;
  const Pieces pieces{size, [&] {
                        const auto portion = next();
                        checksums.add(portion);
                        return portion;
                      }};
  if (const auto written = replace_file(path, pieces); !written) return written.error();
  return checksums.finish();
}

}  // namespace terrace::ann
