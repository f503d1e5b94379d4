// File tier: a disk behind a block queue.
#pragma once

#include <memory>

#include "terrace/tier.hpp"

namespace terrace {

/// pre: spec.kind == file
Result<std::unique_ptr<Tier>> open_file_tier(const TierSpec& spec);

}  // namespace terrace
