// safetensors: named tensors in one file, as the world exchanges trained weights. Eight bytes with the length
// of a header, the header in JSON (name -> dtype, shape, offsets of its bytes; `__metadata__` -> texts), then
// the bytes of all tensors, without holes or overlaps. Row-major, little-endian.
//
// Nothing a file declares is trusted. Functions are thread-safe; a File may be read by several threads.
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

/// Of one element.
Bytes size_of(DType dtype);
/// As the header spells it: `F32`.
std::string_view to_string(DType dtype);

/// A view: its bytes belong to someone else.
struct Tensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::uint64_t> shape;  ///< empty: one element; a zero in it: none
  std::span<const std::byte> bytes;
};

using Metadata = std::map<std::string, std::string>;

/// What a file holds, in the order of its bytes.
struct Contents {
  std::vector<Tensor> tensors;
  Metadata metadata;

  /// The tensor of that name, or nullptr.
  const Tensor* find(std::string_view name) const;
};

/// Headers beyond this are refused, as they are by the format's own library.
inline constexpr Bytes kLargestHeader{100'000'000};

/// Replaces the file at `path` as a whole: whatever happens, what is there is the old file or the new one. In
/// it every tensor stands at a multiple of its element's size. Fails where there is no such folder or it may
/// not be written to, or where the header would be too large; throws EnvironmentError where the disk is full
/// or fails.
/// pre: names are distinct UTF-8 and not `__metadata__`; bytes are as many as dtype and shape ask for
Result<void> write(const std::filesystem::path& path, std::span<const Tensor> tensors,
                   const Metadata& metadata = {});

/// The same for tensors that are not all in memory: `bytes_of(i, offset)` returns the bytes of tensor `i`
/// from there on, or some of them, and is asked for the rest then; tensors come in the order given where
/// their elements are of one size. What it returned is used until it is called again, which happens once
/// more, with their number, when all were taken. `bytes` are not looked at.
Result<void> write(const std::filesystem::path& path, std::span<const Tensor> tensors,
                   const Metadata& metadata,
                   const std::function<std::span<const std::byte>(std::size_t, std::uint64_t)>& bytes_of);

/// Checks a whole file held in memory; the tensors are views of it. `name` stands for it in messages.
Result<Contents> parse(std::span<const std::byte> file, std::string_view name);

/// An open file, mapped: its tensors take memory only while they are looked at, and `write` to the same path
/// does not disturb them. As with any mapping, another program that shortens the file in place, or a disk
/// that fails to read, ends this process by a signal.
class File {
 public:
  const std::vector<Tensor>& tensors() const noexcept { return contents_.tensors; }
  const Metadata& metadata() const noexcept { return contents_.metadata; }
  /// The tensor of that name, or nullptr.
  const Tensor* find(std::string_view name) const { return contents_.find(name); }

 private:
  friend Result<File> read(const std::filesystem::path& path);
  File(Mapping mapping, Contents contents) : mapping_(std::move(mapping)), contents_(std::move(contents)) {}

  Mapping mapping_;
  Contents contents_;
};

/// Fails with one sentence that names the path where there is no such file or it is damaged. Files of other
/// writers may hold tensors at odd addresses: copy their elements, do not cast.
Result<File> read(const std::filesystem::path& path);

}  // namespace terrace::safetensors
