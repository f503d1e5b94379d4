// SPDX-License-Identifier: Apache-2.0
// The manifest of an index file: what the index is, and the checksums of its parts. It is written last, so a
// folder without one holds no index.
//
//   INDEX/manifest.json   this
//   INDEX/fast.bin        links of layers 1 and up, ids, vectors of promoted nodes, the book of codes and the
//                         codes of the others, twins, removed ids
//   INDEX/slow.bin        the slow part as it lies on a disk (layout.hpp)
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ann/layout.hpp"
#include "terrace/ann.hpp"

namespace terrace::ann {

inline constexpr Bytes kCheckedPiece{1U << 20};

struct Manifest {
  Metric metric = Metric::l2;
  std::size_t dimension = 0;
  std::vector<LayerSize> layers;
  std::uint64_t twins = 0, removed = 0;
  std::vector<std::uint32_t> fast_checksums, slow_checksums;  ///< of each piece, the last may be shorter
  std::uint32_t code_bytes = 0;
  ElementType element = ElementType::f32;  ///< of vectors in the slow part

  Bytes fast_bytes() const;
  Bytes slow_bytes() const { return SlowLayout(layers, dimension, true, element).total(); }
  std::string fingerprint() const;
  bool operator==(const Manifest&) const = default;
};

/// `before` is the checksum of the bytes in front of them.
std::uint32_t checksum(std::span<const std::byte> bytes, std::uint32_t before = 0);
/// How many checksums a file of that size has.
std::uint64_t pieces_in(Bytes size);

std::string print_manifest(const Manifest& manifest);
/// Every size in it fits together, so nothing computed from it overflows. Fails with one sentence.
Result<Manifest> parse_manifest(std::string_view text);

}  // namespace terrace::ann
