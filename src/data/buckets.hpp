// Buckets: the few input sizes that a graph is made for, where sizes change from batch to batch. An input is
// padded to the smallest bucket that holds it (002 section 4.4.5).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace terrace {

/// As many as the paper has.
inline constexpr std::size_t kMostBuckets = 10;

/// The buckets, in ascending order, that pad these lengths the least in all: exact. The largest is the
/// longest length, and there are no more than there are different lengths. pre: there is a length, all are
/// above zero, and most > 0
std::vector<std::int64_t> choose_buckets(std::span<const std::int64_t> lengths,
                                         std::size_t most = kMostBuckets);

/// The place of the smallest bucket that holds a length. pre: buckets ascend, and the last one holds it
std::size_t bucket_of(std::span<const std::int64_t> buckets, std::int64_t length);

}  // namespace terrace
