// SPDX-License-Identifier: Apache-2.0
// Where everything of an index lies, to the byte (002 section 3.3.4). Plain data.
//
//   fast part   links of layers 1 and up, vectors and ids of promoted nodes
//   slow part   links of layer 0; vectors and ids of the other nodes, each record beside its links
#pragma once

#include <cstdint>
#include <vector>

#include "ann/element.hpp"
#include "ann/graph.hpp"
#include "terrace/bytes.hpp"

namespace terrace::ann {

inline constexpr Bytes kLinkBytes{sizeof(std::uint32_t)}, kIdBytes{sizeof(std::uint32_t)};

/// The terms of the equations, and the ids, which the equations leave out.
struct PartSize {
  Bytes links, elements, ids;
  Bytes total() const { return links + elements + ids; }
  bool operator==(const PartSize&) const = default;
};

/// fast = sum over layers 1.. of N_i x M_i x byte_per_link + N_1 x byte_per_element
PartSize fast_size(const std::vector<LayerSize>& layers, std::size_t dimension);
/// slow = N_0 x M_0 x byte_per_link + (N_0 - N_1) x byte_per_element
PartSize slow_size(const std::vector<LayerSize>& layers, std::size_t dimension,
                   ElementType type = ElementType::f32);

/// Codes of the nodes that are not promoted, of so many bytes each, and their book.
Bytes codes_size(const std::vector<LayerSize>& layers, std::size_t dimension, std::uint32_t code_bytes);

/// As many promoted nodes as `fast` has room for, beside the codes of the others; zero where there is none
/// for one.
std::uint64_t most_promoted(std::uint64_t nodes, std::uint32_t links, std::size_t dimension,
                            std::uint32_t code_bytes, Bytes fast);

/// Places in the slow part. First come the link lists of promoted nodes, then the records of the others:
/// links, vector, id. Addressable memory holds them tightly, but for padding to whole cache lines where links
/// and vectors are such; for a disk none crosses the border of a unit, so that one read brings it. Only a
/// disk holds vectors as bytes; memory has room for the floats that searches compute with.
class SlowLayout {
 public:
  static constexpr Bytes kUnit{4096}, kLine{64};

  /// `blocks`: for a disk. pre: floats where it is not
  SlowLayout(const std::vector<LayerSize>& layers, std::size_t dimension, bool blocks,
             ElementType type = ElementType::f32);

  Bytes list_bytes() const { return kLinkBytes * links_; }
  Bytes record_bytes() const { return id_at() + kIdBytes; }
  Bytes vector_at() const { return list_bytes(); }
  /// Whole words, so that links are aligned.
  Bytes id_at() const { return list_bytes() + round_up(Bytes{size_of(type_) * dimension_}, kIdBytes); }
  std::uint64_t nodes() const { return nodes_; }
  std::uint64_t promoted() const { return promoted_; }
  std::uint32_t links() const { return links_; }
  std::size_t dimension() const { return dimension_; }
  ElementType type() const { return type_; }

  /// What a disk reads at once; tight layouts have none.
  Bytes unit() const { return unit_; }
  std::uint64_t units() const { return unit_.count == 0 ? 0 : total().count / unit_.count; }
  std::uint64_t records_per_unit() const { return unit_ / record_bytes(); }
  Bytes total() const;
  /// Where the node's links begin, which is where its record does if it has one. pre: node < nodes()
  std::uint64_t place(std::uint32_t node) const;
  /// Where the records of nodes that are not promoted begin.
  std::uint64_t records_at() const { return records_at_; }
  /// From one record to the next, where there are no units.
  Bytes stride() const;

 private:
  std::uint32_t links_ = 0;
  std::size_t dimension_ = 0;
  ElementType type_ = ElementType::f32;
  std::uint64_t nodes_ = 0, promoted_ = 0;
  Bytes unit_{0};
  std::uint64_t records_at_ = 0;  // where they begin
};

}  // namespace terrace::ann
