// Emulated tier: memory that behaves as slow as declared, so that any machine can be rerun on this one.
#pragma once

#include <memory>

#include "base/clock.hpp"
#include "terrace/tier.hpp"

namespace terrace {

/// The clock outlives the tier. pre: spec.kind == emulated
Result<std::unique_ptr<Tier>> make_emulated_tier(const TierSpec& spec, Clock& clock);

}  // namespace terrace
