// What a planner tells the migration writer about fetches: their order, and what becomes of late ones.
#pragma once

#include <cstdint>
#include <set>

namespace terrace::migration {

enum class LateRule { wait, leave, predicted };
enum class FetchOrder { accesses, use };

/// Case 3 of 002 section 4.4.4: a migration is not finished when its interval begins.
struct IntervalEnd {
  LateRule rule = LateRule::predicted;
  std::set<std::uint32_t> leaving;  ///< intervals that leave although the rule says wait
  LateRule of(std::uint32_t interval) const { return leaving.count(interval) > 0 ? LateRule::leave : rule; }
};

}  // namespace terrace::migration
