// SPDX-License-Identifier: Apache-2.0
#include "ann/vector_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ann/hdf5_file.hpp"
#include "ann/npy_header.hpp"
#include "ann/prepare.hpp"
#include "ann/vector_source.hpp"
#include "base/check.hpp"
#include "base/input_file.hpp"
#include "base/replace_file.hpp"

namespace terrace::ann {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

struct Named {
  VectorFormat format;
  std::string_view ending;
};
constexpr std::array kFormats{Named{VectorFormat::fvecs, ".fvecs"}, Named{VectorFormat::bvecs, ".bvecs"},
                              Named{VectorFormat::fbin, ".fbin"}, Named{VectorFormat::u8bin, ".u8bin"},
                              Named{VectorFormat::npy, ".npy"}};

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

void append(std::vector<float>& values, std::span<const std::byte> bytes, ElementType type) {
  const std::size_t before = values.size();
  if (type == ElementType::f32) {
    values.resize(before + bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(values.data() + before, bytes.data(), bytes.size());
    return;
  }
  values.resize(before + bytes.size());
  std::transform(bytes.begin(), bytes.end(), values.begin() + static_cast<std::ptrdiff_t>(before),
                 [](std::byte one) { return static_cast<float>(std::to_integer<unsigned>(one)); });
}

class Parser {
 public:
  Parser(std::span<const std::byte> file, std::string_view name, std::size_t most)
      : file_(file), name_(name), most_(most) {}

  Result<Vectors> rows_with_dimension(ElementType type) {
    Vectors vectors;
    std::size_t at = 0;
    for (std::size_t row = 0; at < file_.size() && row < most_; ++row) {
      if (file_.size() - at < sizeof(std::uint32_t)) return refuse(fmt::format("ends within row {}", row));
      const std::size_t dimension = word_at(file_, at);
      at += sizeof(std::uint32_t);
      if (const auto good = check_dimension(dimension); !good) return good.error();
      if (row > 0 && dimension != vectors.dimension)
        return refuse(
            fmt::format("has {} dimensions in row {} and {} before it", dimension, row, vectors.dimension));
      vectors.dimension = dimension;
      const std::size_t bytes = dimension * size_of(type);
      if (file_.size() - at < bytes) return refuse(fmt::format("ends within row {}", row));
      append(vectors.values, file_.subspan(at, bytes), type);
      at += bytes;
    }
    if (vectors.dimension == 0) return refuse("holds no vector");
    return vectors;
  }

  Result<Vectors> counted(ElementType type) {
    constexpr std::size_t kHeader = 2 * sizeof(std::uint32_t);
    if (file_.size() < kHeader) return refuse(fmt::format("has no header of {} bytes", kHeader));
    return matrix({word_at(file_, 0), word_at(file_, 4), type}, file_.subspan(kHeader));
  }

  Result<Vectors> npy() {
    const auto header = parse_npy_header(file_);
    if (!header) return refuse(header.error().message);
    return matrix(header->matrix, file_.subspan(header->bytes));
  }

 private:
  Error refuse(const std::string& reason) const {
    return {ErrorCode::invalid_argument, fmt::format("{} {}; name another file of vectors", name_, reason)};
  }

  Result<void> check_dimension(std::uint64_t dimension) const {
    if (dimension > 0 && dimension <= kMostDimensions) return {};
    return refuse(fmt::format("declares {} dimensions where 1 to {} can be", dimension, kMostDimensions));
  }

  Result<Vectors> matrix(const Matrix& declared, std::span<const std::byte> bytes) const {
    if (const auto good = check_dimension(declared.columns); !good) return good.error();
    const std::uint64_t row = declared.columns * size_of(declared.type);
    if (declared.rows > bytes.size() / row || declared.rows * row != bytes.size())
      return refuse(fmt::format("declares {} rows of {} bytes and holds {} bytes of them", declared.rows, row,
                                bytes.size()));
    Vectors vectors;
    vectors.dimension = declared.columns;
    append(vectors.values, bytes.first(std::min<std::uint64_t>(most_, declared.rows) * row), declared.type);
    return vectors;
  }

  std::span<const std::byte> file_;
  std::string_view name_;
  std::size_t most_;
};

void put(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
void put_word(std::vector<std::byte>& out, std::size_t number) {
  const auto word = static_cast<std::uint32_t>(number);
  put(out, std::as_bytes(std::span(&word, 1)));
}

Error unknown_format(const std::filesystem::path& path) {
  return {ErrorCode::invalid_argument,
          fmt::format(
              "{} is no file of vectors by its name: it ends in .fvecs, .bvecs, .fbin, .u8bin, .npy or .hdf5",
              path.native())};
}

}  // namespace

std::optional<VectorFormat> format_of(const std::filesystem::path& path) {
  for (const Named& named : kFormats)
    if (path.extension() == named.ending) return named.format;
  return std::nullopt;
}

Result<Vectors> parse_vectors(VectorFormat format, std::span<const std::byte> file, std::string_view name,
                              std::size_t most) {
  Parser parser(file, name, most);
  switch (format) {
    case VectorFormat::fvecs:
      return parser.rows_with_dimension(ElementType::f32);
    case VectorFormat::bvecs:
      return parser.rows_with_dimension(ElementType::u8);
    case VectorFormat::fbin:
      return parser.counted(ElementType::f32);
    case VectorFormat::u8bin:
      return parser.counted(ElementType::u8);
    case VectorFormat::npy:
      break;
  }
  return parser.npy();
}

std::vector<std::byte> print_vectors(VectorFormat format, const Vectors& vectors) {
  check(format != VectorFormat::bvecs && format != VectorFormat::u8bin, "formats of bytes hold no floats");
  std::vector<std::byte> out;
  if (format == VectorFormat::fvecs) {
    for (std::size_t row = 0; row < vectors.count(); ++row) {
      put_word(out, vectors.dimension);
      put(out, std::as_bytes(vectors[row]));
    }
    return out;
  }
  if (format == VectorFormat::fbin) {
    put_word(out, vectors.count());
    put_word(out, vectors.dimension);
  } else {
    out = print_npy_header({vectors.count(), vectors.dimension, ElementType::f32});
  }
  put(out, std::as_bytes(std::span(vectors.values)));
  return out;
}

namespace {

Result<Vectors> read_whole(const std::filesystem::path& path, VectorFormat format, std::size_t most) {
  const auto file = InputFile::open(path);
  if (!file) return file.error();
  return parse_vectors(format, file->contents(), path.native(), most);
}

Result<Vectors> read_rows(const std::filesystem::path& path, std::size_t most) {
  const auto source = VectorSource::open(path);
  if (!source) return source.error();
  Vectors vectors{source->dimension(), {}};
  const std::uint64_t rows = std::min<std::uint64_t>(most, source->count());
  vectors.values.reserve(rows * vectors.dimension);
  source->read_first(rows, [&](std::uint64_t, std::span<const float> values) {
    vectors.values.insert(vectors.values.end(), values.begin(), values.end());
  });
  return vectors;
}

}  // namespace

Result<Vectors> read_vectors(const std::filesystem::path& path, std::size_t most) {
  const auto format = format_of(path);
  if (!format && !parse_hdf5_name(path)) return unknown_format(path);
  auto vectors = format ? read_whole(path, *format, most) : read_rows(path, most);
  if (!vectors) return vectors;
  // Cosine accepts every length: what distances allow is asked again by who compares.
  if (const auto good = check_vectors(*vectors, Metric::cosine, "vector"); !good)
    return Error{good.error().code, fmt::format("{}: {}", path.native(), good.error().message)};
  return vectors;
}

Result<void> write_vectors(const std::filesystem::path& path, const Vectors& vectors) {
  const auto format = format_of(path);
  if (parse_hdf5_name(path))
    return Error{
        ErrorCode::unsupported,
        fmt::format("{}: HDF5 is read and not written: end it in .fvecs, .fbin or .npy", path.native())};
  if (!format) return unknown_format(path);
  if (*format == VectorFormat::bvecs || *format == VectorFormat::u8bin)
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{} would hold bytes, and the vectors are floats: end it in .fvecs, .fbin or .npy",
                    path.native())};
  const auto bytes = print_vectors(*format, vectors);
  const std::array<std::span<const std::byte>, 1> pieces{bytes};
  return replace_file(path, pieces);
}

}  // namespace terrace::ann
