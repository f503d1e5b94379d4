#include "data/idx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/input_file.hpp"
#include "data/gunzip.hpp"

namespace terrace {
namespace {

using namespace literals;

constexpr std::uint8_t kUnsignedBytes = 0x08;
constexpr Bytes kLargestContents = 4_GiB;
constexpr std::size_t kPiece = (1_MiB).count;

class Reader {
 public:
  Reader(std::span<const std::byte> file, std::string_view name) : name_(name), source_(file) {}

  Result<Idx> read() {
    if (const auto fine = read_magic(); !fine) return fine.error();
    if (const auto fine = read_dims(); !fine) return fine.error();
    if (const auto fine = read_bytes(); !fine) return fine.error();
    if (const auto fine = require_end(); !fine) return fine.error();
    return std::move(idx_);
  }

 private:
  Error refuse(const std::string& reason) const {
    return {ErrorCode::invalid_argument, fmt::format("{} {}; fetch the file again", name_, reason)};
  }

  Error ended_early(const std::string& inside) const {
    switch (source_.ending()) {
      case Gunzip::Ending::truncated:
        return refuse(fmt::format("is truncated: its compressed data stops inside {}", inside));
      case Gunzip::Ending::corrupt:
        return refuse(fmt::format("is not a sound gzip file: decompressing {} failed", inside));
      default:
        return refuse(fmt::format("is too short: it ends inside {}", inside));
    }
  }

  Result<void> read_magic() {
    std::array<std::uint8_t, 4> magic;
    if (source_.read(magic) < magic.size()) return ended_early("the header");
    if (magic[0] != 0 || magic[1] != 0)
      return refuse("is not an IDX file: it does not start with two zero bytes");
    if (magic[2] != kUnsignedBytes)
      return refuse(fmt::format("holds elements of type {:#04x} where unsigned bytes ({:#04x}) are read",
                                magic[2], kUnsignedBytes));
    if (magic[3] == 0) return refuse("is not an IDX file: it declares no dimension");
    idx_.dims.resize(magic[3]);
    return {};
  }

  Result<void> read_dims() {
    for (std::uint32_t& dim : idx_.dims) {
      std::array<std::uint8_t, 4> big_endian;
      if (source_.read(big_endian) < big_endian.size()) return ended_early("the header");
      dim = 0;
      for (const std::uint8_t byte : big_endian) dim = dim << 8 | byte;
    }
    // A zero dimension makes the product zero, however large the others are.
    const bool none = std::find(idx_.dims.begin(), idx_.dims.end(), 0u) != idx_.dims.end();
    declared_ = none ? 0 : 1;
    for (const std::uint32_t dim : idx_.dims) {
      if (none) break;
      declared_ *= dim;  // cannot wrap: both factors are at most 2^32
      if (declared_ > kLargestContents.count)
        return refuse(
            fmt::format("declares more than the {} that are read from one file", readable(kLargestContents)));
    }
    return {};
  }

  // The bytes are read in pieces, so that a forged header cannot make it allocate memory.
  Result<void> read_bytes() {
    std::vector<std::uint8_t>& bytes = idx_.bytes;
    while (bytes.size() < declared_) {
      const std::size_t before = bytes.size();
      const std::size_t piece = std::min<std::size_t>(kPiece, declared_ - before);
      bytes.resize(before + piece);
      const std::size_t got = source_.read(std::span(bytes).subspan(before));
      if (got < piece) return ended_early(fmt::format("byte {} of the {} declared", before + got, declared_));
    }
    return {};
  }

  // The checksum is at the end of the data, so it is checked here too.
  Result<void> require_end() {
    std::array<std::uint8_t, 1> more;
    if (source_.read(more) > 0)
      return refuse(fmt::format("holds more than the {} bytes declared", declared_));
    switch (source_.ending()) {
      case Gunzip::Ending::clean:
        return {};
      case Gunzip::Ending::garbage:
        return refuse("has other bytes after its compressed data");
      default:
        return ended_early("the checksum");
    }
  }

  const std::string_view name_;
  Gunzip source_;
  std::uint64_t declared_ = 0;
  Idx idx_;
};

Error too_large(std::string_view name, Bytes size) {
  return {ErrorCode::too_large, fmt::format("{} has {} where at most {} are read; name a dataset's file",
                                            name, readable(size), readable(Gunzip::kLargestFile))};
}

}  // namespace

Result<Idx> parse_idx(std::span<const std::byte> file, std::string_view name) {
  if (file.size() > Gunzip::kLargestFile.count) return too_large(name, Bytes{file.size()});
  return Reader(file, name).read();
}

Result<Idx> read_idx(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  if (!file) return file.error();
  if (file->size() > Gunzip::kLargestFile) return too_large(path.native(), file->size());
  return parse_idx(file->contents(), path.native());
}

}  // namespace terrace
