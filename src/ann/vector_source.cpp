// SPDX-License-Identifier: Apache-2.0
#include "ann/vector_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ann/checked_file.hpp"
#include "ann/hdf5_file.hpp"
#include "ann/vector_file.hpp"

namespace terrace::ann {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint32_t), kReadAtOnce = 1U << 20;

/// Where the values of a file are.
struct Header {
  Matrix matrix;
  std::uint64_t start = 0, skip = 0;
  bool last = true;  ///< the file ends with them
};

std::vector<std::byte> beginning(const InputFile& file, std::uint64_t most) {
  std::vector<std::byte> bytes(std::min(most, file.size().count));
  read_at(file, 0, bytes);
  return bytes;
}

std::uint32_t word(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Result<Header> read_header(const InputFile& file, VectorFormat format) {
  constexpr std::uint64_t kMostHeader = 1U << 16;
  const auto bytes = beginning(file, kMostHeader);
  const bool counted = format == VectorFormat::fbin || format == VectorFormat::u8bin;
  const ElementType type =
      format == VectorFormat::bvecs || format == VectorFormat::u8bin ? ElementType::u8 : ElementType::f32;
  if (format == VectorFormat::npy) {
    const auto header = parse_npy_header(bytes);
    if (!header) return header.error();
    return Header{header->matrix, header->bytes, 0};
  }
  if (bytes.size() < 2 * kWord) return Error{ErrorCode::invalid_argument, "holds no vector"};
  if (counted) return Header{{word(bytes, 0), word(bytes, kWord), type}, 2 * kWord, 0};
  const std::uint64_t dimension = word(bytes, 0);
  const std::uint64_t stride = kWord + dimension * size_of(type);
  return Header{{file.size().count / stride, dimension, type}, 0, kWord};
}

Result<Header> read_hdf5_header(const Hdf5Name& name) {
  const auto found = find_hdf5_matrix(name);
  if (!found) return found.error();
  return Header{found->matrix, found->start, 0, false};
}

}  // namespace

Result<VectorSource> VectorSource::open(const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& reason) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} {}; name another file of vectors", path.native(), reason)};
  };
  const auto hdf5 = parse_hdf5_name(path);
  const auto format = format_of(path);
  if (!format && !hdf5) return refuse("is no file of vectors by its name");
  auto file = InputFile::open(hdf5 ? hdf5->file : path);
  if (!file) return file.error();
  const auto header = hdf5 ? read_hdf5_header(*hdf5) : read_header(*file, *format);
  if (!header) return refuse(header.error().message);
  const Matrix& matrix = header->matrix;
  if (matrix.columns < 1 || matrix.columns > kMostDimensions)
    return refuse(
        fmt::format("declares {} dimensions where 1 to {} can be", matrix.columns, kMostDimensions));
  const std::uint64_t stride = header->skip + matrix.columns * size_of(matrix.type);
  const std::uint64_t held = file->size().count - std::min(header->start, file->size().count);
  if (matrix.rows > held / stride || (header->last && matrix.rows * stride != held))
    return refuse(
        fmt::format("declares {} rows of {} bytes and holds {} bytes of them", matrix.rows, stride, held));
  posix_fadvise(file->descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return VectorSource(*std::move(file), matrix, header->start, header->skip);
}

std::string VectorSource::identity() const {
  struct stat status {};
  const bool known = fstat(file_.descriptor(), &status) == 0;
  return fmt::format("{} {} {}.{}", file_.path().native(), file_.size().count,
                     known ? status.st_mtim.tv_sec : 0, known ? status.st_mtim.tv_nsec : 0);
}

void VectorSource::convert(const std::byte* rows, std::uint64_t count, float* out) const {
  for (std::uint64_t row = 0; row < count; ++row, rows += stride(), out += matrix_.columns) {
    read_elements(matrix_.type, rows + skip_, {out, matrix_.columns});
  }
}

void VectorSource::read(std::uint64_t row, float* out) const {
  std::vector<std::byte> bytes(stride());
  read_at(file_, start_ + row * stride(), bytes);
  convert(bytes.data(), 1, out);
}

void VectorSource::read_first(std::uint64_t count, const Take& take) const {
  const std::uint64_t most = std::max<std::uint64_t>(1, kReadAtOnce / stride());
  std::vector<std::byte> bytes(most * stride());
  std::vector<float> values(most * matrix_.columns);
  for (std::uint64_t row = 0; row < count; row += most) {
    const std::uint64_t rows = std::min(most, count - row);
    read_at(file_, start_ + row * stride(), std::span(bytes).first(rows * stride()));
    convert(bytes.data(), rows, values.data());
    take(row, std::span(values).first(rows * matrix_.columns));
  }
  // What went by is not needed soon, and memory is short.
  posix_fadvise(file_.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace terrace::ann
