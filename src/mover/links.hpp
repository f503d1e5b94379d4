// The LinkTable counts the traffic of each link. It is thread-safe.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "terrace/mover.hpp"

namespace terrace {

/// LinkEnds names a link by its two tiers.
struct LinkEnds {
  TierId from, to;
  bool operator==(const LinkEnds&) const = default;
};

class LinkTable {
 public:
  explicit LinkTable(std::size_t tiers) : tiers_(tiers), entries_(tiers * tiers) {}

  /// Records that a transfer begins on the link.
  void open(LinkEnds link) noexcept;
  void count(LinkEnds link, Bytes moved) noexcept;
  /// Records that a transfer ends on the link.
  void close(LinkEnds link, bool complete) noexcept;

  LinkStatistics statistics(LinkEnds link) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    LinkStatistics past;
    std::size_t open = 0;
    Clock::time_point since;  // when open became positive
  };

  Entry& entry(LinkEnds link) noexcept { return entries_[link.from.index * tiers_ + link.to.index]; }

  const std::size_t tiers_;
  mutable std::mutex mutex_;  // guards entries_
  std::vector<Entry> entries_;
};

}  // namespace terrace
