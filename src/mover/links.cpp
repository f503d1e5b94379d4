// SPDX-License-Identifier: Apache-2.0
#include "mover/links.hpp"

namespace terrace {

void LinkTable::open(LinkEnds link) noexcept {
  const std::lock_guard lock(mutex_);
  Entry& here = entry(link);
  if (here.open++ == 0) here.since = Clock::now();
}

void LinkTable::count(LinkEnds link, Bytes moved) noexcept {
  const std::lock_guard lock(mutex_);
  entry(link).past.bytes += moved;
}

void LinkTable::close(LinkEnds link, bool complete) noexcept {
  const std::lock_guard lock(mutex_);
  Entry& here = entry(link);
  here.past.transfers += complete ? 1 : 0;
  here.past.failures += complete ? 0 : 1;
  if (--here.open == 0) here.past.busy += Clock::now() - here.since;
}

LinkStatistics LinkTable::statistics(LinkEnds link) const {
  const std::lock_guard lock(mutex_);
  const Entry& here = entries_[link.from.index * tiers_ + link.to.index];
  LinkStatistics now = here.past;
  if (here.open > 0) now.busy += Clock::now() - here.since;
  return now;
}

}  // namespace terrace
