// SPDX-License-Identifier: Apache-2.0
// SlowPart: the slow part of an index as one search thread reaches it, in memory or on a disk. Every answer
// is the same wherever the bytes lie; what differs is counted. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ann/layout.hpp"
#include "ann/metric.hpp"
#include "terrace/tier.hpp"

namespace terrace::ann {

struct SlowCounts {
  std::uint64_t bytes = 0;   ///< used in place, or read from the disk
  std::uint64_t reads = 0;   ///< of the disk
  std::uint64_t rounds = 0;  ///< times that a search waited for reads, which were all asked for at once
  std::uint64_t hits = 0;    ///< records and lists that the cache had
};

class SlowPart {
 public:
  virtual ~SlowPart() = default;

  /// Says that the links of these nodes will be asked for soon: they are brought while the caller goes on.
  /// Failures are told when they are asked for.
  virtual void prefetch(std::span<const std::uint32_t> nodes) = 0;
  /// Says that the links of this node may be asked for next. Costs nothing: a disk ignores it.
  virtual void expect(std::uint32_t /*node*/) {}
  /// Appends the links of the nodes, one after the other. Throws EnvironmentError where the disk fails or a
  /// link leads to no node.
  virtual void links(std::span<const std::uint32_t> nodes, std::vector<std::uint32_t>& out) = 0;
  /// Distances of the query to the vectors of nodes that are not promoted.
  virtual void distances(const float* query, std::span<const std::uint32_t> nodes, float* out) = 0;
  /// Ids of nodes that are not promoted.
  virtual void ids(std::span<const std::uint32_t> nodes, std::uint32_t* out) = 0;

  virtual const SlowCounts& counts() const = 0;

  /// All of the slow part, where a search may read it by itself, because nothing has to be brought or
  /// charged; nullptr elsewhere.
  virtual const std::byte* in_place() const { return nullptr; }
};

/// Memory that the processor reaches, tightly laid out. `charged`: the tier it belongs to, which takes the
/// time that its device would need; it may be none. All are borrowed.
std::unique_ptr<SlowPart> slow_in_memory(const SlowLayout& layout, const std::byte* memory,
                                         DistanceFunction distance, Tier* charged);

/// The smallest cache that reading from a disk works with, its tables included.
Bytes least_cache(const SlowLayout& layout);

/// A disk with the block layout, behind a queue of this part's own, which it reads in rounds through a cache
/// of `cache` bytes. `name` and `path` are for messages. pre: cache >= least_cache(layout)
std::unique_ptr<SlowPart> slow_on_disk(const SlowLayout& layout, BlockQueue& queue, DistanceFunction distance,
                                       Bytes cache, std::string name, std::string path);

}  // namespace terrace::ann
