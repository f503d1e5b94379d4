// SPDX-License-Identifier: Apache-2.0
// Offset packing: gives every tensor of one tier its offset, so that no two that live at the same time
// overlap and the tier is as small as can be found. This settles fragmentation when a plan is made.
//
// An item is one stay of a tensor in the tier, live from its first to its last kernel, or one that is away
// for a while and comes back to its place. Time is the position of a kernel in the order of execution. Pure
// functions: the same items give the same packing, everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/time_away.hpp"
#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

struct PackingItem {
  Bytes size;
  std::uint32_t first = 0;  ///< position of the first kernel at which it is live
  std::uint32_t last = 0;   ///< and of the last; not below `first`
  TimeAway away{};          ///< pre: where there is one, no item begins before this one or ends after it
};

struct Packing {
  std::vector<std::uint64_t> offsets;  ///< one per item, in the items' order, each a multiple of alignment
  Bytes total;                         ///< what the tier must hold; a multiple of alignment
  Bytes alignment;
};

/// Looks at an item already placed, a nanosecond or two each. The greedy orders are always all tried; this is
/// what may be spent on improving the best of them.
struct PackingEffort {
  std::uint64_t looks = 100'000'000;
};

/// The largest sum of sizes, rounded up to `alignment`, that are live at one time: no packing is smaller.
/// pre: alignment > 0, first <= last, and the rounded sizes add up to less than 2^63
Bytes live_bytes_bound(std::span<const PackingItem> items, Bytes alignment);

/// A valid packing, small but not always the smallest: that is an NP-hard problem. Takes the best of several
/// greedy orders, then improves it until it meets live_bytes_bound or the effort is spent.
/// pre: as for live_bytes_bound
Packing pack(std::span<const PackingItem> items, Bytes alignment, PackingEffort effort = {});

/// A valid packing in time n log n: places items in the order of time, as an allocator would that knows how
/// long each will stay, long stays from the bottom and short ones from `limit` downwards. The best of a few
/// ways, or the first that does not exceed `limit`. For many items, or where a little waste does not matter:
/// what is away for a while keeps its place.
/// pre: as for live_bytes_bound
Packing pack_in_time_order(std::span<const PackingItem> items, Bytes alignment, Bytes limit);

/// The same, but some items have a space of their own that no other reaches into: it hangs from the end of
/// the packing downwards in one piece, at each moment as deep as its items need, and so grows and shrinks.
/// Where the others do not fit below it, the packing exceeds `limit`. pre: as for live_bytes_bound; one flag
/// for each item
Packing pack_with_reserve(std::span<const PackingItem> items, const std::vector<bool>& in_reserve,
                          Bytes alignment, Bytes limit);

/// Fails with two items that overlap in both time and offsets, or one that is out of place.
Result<void> validate(std::span<const PackingItem> items, const Packing& packing);

}  // namespace terrace
