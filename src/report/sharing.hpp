// Page-level false sharing (000 section 3.2, observation 3): a page holds tensors of different behaviour, so
// that a good placement of the page is wrong for one of them. The functions are pure.
//
// The pages are those of one memory in which a step's tensors are laid out in cache lines for their
// lifetimes; memory of dead tensors is reused.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/tensors.hpp"

namespace terrace {

enum class Layout {
  allocation_order,  ///< as an allocator does: each tensor goes into the first hole that is large enough when
                     ///< it is created
  grouped,  ///< tensors of the same layers together, ordered by accesses, each group in pages of its own
            ///< (000 section 4.2)
};

/// Returns the offset of each tensor.
std::vector<std::uint64_t> lay_out(std::span<const TensorFacts> facts, Layout layout);

struct Sharing {
  std::uint64_t pages = 0;             ///< pages that ever hold a tensor
  std::uint64_t shared = 0;            ///< pages that hold several tensors at one time
  std::uint64_t unlike_accesses = 0;   ///< shared pages with two tensors in different buckets of by_accesses
  std::uint64_t unlike_lifetimes = 0;  ///< shared pages with two tensors in different buckets of by_lifetime
  std::uint64_t falsely_shared = 0;    ///< pages of either kind
  std::size_t tensors = 0;             ///< tensors in such pages
  std::vector<Bytes>
      by_page_accesses;  ///< pages in the buckets of by_accesses, by the accesses of all tensors in them
};
Sharing sharing(std::span<const TensorFacts> facts, std::span<const std::uint64_t> offsets);

}  // namespace terrace
