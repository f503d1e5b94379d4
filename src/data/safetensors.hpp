// safetensors is the common format for exchanging trained weights: named tensors in one file. It has eight
// bytes with the length of a header, the header in JSON (name -> dtype, shape, offsets of its bytes;
// `__metadata__` -> texts), then the bytes of all tensors, without holes or overlaps, row-major and
// little-endian.
//
// Nothing that a file declares is trusted. The functions are thread-safe, and several threads may read a
// File.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"
#include "tiers/mapping.hpp"

namespace terrace::safetensors {

enum class DType { f32, i32, i64, u8, bf16 };

/// Returns the size of one element.
Bytes size_of(DType dtype);
/// Returns the type's name in the header, such as `F32`.
std::string_view to_string(DType dtype);

/// A Tensor is a view: it does not own its bytes.
struct Tensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::uint64_t> shape;  ///< an empty shape has one element; a shape with a zero has none
  std::span<const std::byte> bytes;
};

using Metadata = std::map<std::string, std::string>;

/// The contents of a file, in the order of its bytes.
struct Contents {
  std::vector<Tensor> tensors;
  Metadata metadata;

  /// Returns the tensor of that name, or nullptr.
  const Tensor* find(std::string_view name) const;
};

/// Larger headers are refused, as they are by the format's own library.
inline constexpr Bytes kLargestHeader{100'000'000};

/// Replaces the file at `path` atomically: whatever happens, the path holds the old file or the new one.
/// Every tensor in it is aligned to its element's size. Fails where there is no such folder or it may not be
/// written to, or where the header would be too large; throws EnvironmentError where the disk is full or
/// fails. pre: names are distinct UTF-8 and not `__metadata__`; bytes are as many as dtype and shape ask for
Result<void> write(const std::filesystem::path& path, std::span<const Tensor> tensors,
                   const Metadata& metadata = {});

/// Does the same for tensors that are not all in memory: `bytes_of(i, offset)` returns the bytes of tensor
/// `i` from `offset` on, or some of them, and is called again for the rest. Tensors of equal element size are
/// asked for in the given order. The returned bytes are used until the next call; a last call, with the
/// number of tensors as `i`, says that all were taken. Tensor::bytes is ignored.
Result<void> write(const std::filesystem::path& path, std::span<const Tensor> tensors,
                   const Metadata& metadata,
                   const std::function<std::span<const std::byte>(std::size_t, std::uint64_t)>& bytes_of);

/// Checks a whole file held in memory; the tensors are views of it. Messages call it `name`.
Result<Contents> parse(std::span<const std::byte> file, std::string_view name);

/// A File is open and mapped: its tensors take memory only while they are read, and `write` to the same path
/// does not disturb them. As with any mapping, another program that shortens the file in place, or a disk
/// that fails to read, ends this process by a signal.
class File {
 public:
  const std::vector<Tensor>& tensors() const noexcept { return contents_.tensors; }
  const Metadata& metadata() const noexcept { return contents_.metadata; }
  /// Returns the tensor of that name, or nullptr.
  const Tensor* find(std::string_view name) const { return contents_.find(name); }

 private:
  friend Result<File> read(const std::filesystem::path& path);
  File(Mapping mapping, Contents contents) : mapping_(std::move(mapping)), contents_(std::move(contents)) {}

  Mapping mapping_;
  Contents contents_;
};

/// Opens a file; fails with one sentence that names the path where there is no such file or it is damaged.
/// Files from other programs may hold unaligned tensors: copy their elements, do not cast.
Result<File> read(const std::filesystem::path& path);

}  // namespace terrace::safetensors
