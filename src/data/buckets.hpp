// Buckets are the few input sizes for which a graph is built, where sizes change from batch to batch. An
// input is padded to the smallest bucket that holds it (002 section 4.4.5).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace terrace {

/// The paper uses as many.
inline constexpr std::size_t kMostBuckets = 10;

/// Returns the buckets, in ascending order, with the least total padding of these lengths (an exact optimum).
/// The largest bucket is the longest length, and there are no more buckets than distinct lengths. pre: there
/// is a length, all are above zero, and most > 0
std::vector<std::int64_t> choose_buckets(std::span<const std::int64_t> lengths,
                                         std::size_t most = kMostBuckets);

/// Returns the index of the smallest bucket that holds a length. pre: buckets ascend, and the last one holds
/// it
std::size_t bucket_of(std::span<const std::int64_t> buckets, std::int64_t length);

}  // namespace terrace
