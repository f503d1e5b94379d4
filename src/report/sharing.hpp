// Page-level false sharing (000 section 3.2, observation 3): pages that hold tensors unlike each other, so
// that what is good for the page is wrong for one of them. Pure functions.
//
// Pages are those of one memory in which a step's tensors are laid out, each for as long as it lives, in
// cache lines; memory of the dead is used again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/tensors.hpp"

namespace terrace {

enum class Layout {
  allocation_order,  ///< as an allocator does: each, when it is made, in the first hole that is large enough
  grouped,           ///< those used in the same layers together, by accesses, each group in pages of its own
                     ///< (000 section 4.2)
};

/// Where each tensor begins.
std::vector<std::uint64_t> lay_out(std::span<const TensorFacts> facts, Layout layout);

struct Sharing {
  std::uint64_t pages = 0;            ///< that ever hold a tensor
  std::uint64_t shared = 0;           ///< that hold several at one time
  std::uint64_t unlike_accesses = 0;  ///< of which two are used unlike often: in other buckets of by_accesses
  std::uint64_t unlike_lifetimes = 0;  ///< the same for by_lifetime
  std::uint64_t falsely_shared = 0;    ///< either
  std::size_t tensors = 0;             ///< that lie in such pages
  std::vector<Bytes>
      by_page_accesses;  ///< of pages, by the accesses of all they hold: buckets of by_accesses
};
Sharing sharing(std::span<const TensorFacts> facts, std::span<const std::uint64_t> offsets);

}  // namespace terrace
