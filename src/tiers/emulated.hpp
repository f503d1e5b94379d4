// An emulated tier is memory that is slowed down to declared rates, so that any machine can be emulated on
// this one.
#pragma once

#include <memory>

#include "base/clock.hpp"
#include "terrace/tier.hpp"

namespace terrace {

/// Opens the tier. pre: the clock outlives the tier; spec.kind == emulated
Result<std::unique_ptr<Tier>> make_emulated_tier(const TierSpec& spec, Clock& clock);

}  // namespace terrace
