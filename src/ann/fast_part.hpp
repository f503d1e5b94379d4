// SPDX-License-Identifier: Apache-2.0
// The part of an index that lies in fast memory. Owned by the index, shared by its searchers.
#pragma once

#include <memory>
#include <vector>

#include "ann/codes.hpp"
#include "ann/huge_memory.hpp"
#include "ann/marks.hpp"
#include "ann/twins.hpp"

namespace terrace::ann {

struct FastPart {
  std::vector<LayerSize> layers;                  ///< the lowest first
  std::vector<std::vector<std::uint32_t>> links;  ///< by layer; that of layer 0 is empty
  HugeVector<float> vectors;                      ///< of promoted nodes
  std::vector<std::uint32_t> ids;                 ///< of promoted nodes
  Codebook book;
  HugeVector<std::uint8_t> codes;  ///< of the other nodes, where there is a book
  std::vector<Twin> twins;
  std::unique_ptr<Marks> marks;  ///< on vectors that were removed
  std::size_t dimension = 0;
  Metric metric = Metric::l2;
  DistanceFunction distance = nullptr;

  std::uint64_t vectors_held() const { return nodes() + twins.size(); }
  std::uint64_t nodes() const { return layers.empty() ? 0 : layers[0].nodes; }
  std::uint64_t promoted() const { return ids.size(); }
  const float* vector_of(std::uint32_t node) const { return vectors.data() + std::size_t{node} * dimension; }
  /// pre: not promoted, and there are codes
  const std::uint8_t* code_of(std::uint32_t node) const {
    return codes.data() + (node - promoted()) * book.parts;
  }
};

}  // namespace terrace::ann
