// The tiers of an NVIDIA GPU: `cuda`, its memory, and `pinned`, host memory that it reaches by itself.
#pragma once

#include <memory>

#include "terrace/tier.hpp"

namespace terrace {

/// The GPU of that number, used through its primary context, the one that CUDA's runtime and PyTorch use.
/// Fails where open_cuda_tier() does.
Result<std::shared_ptr<Device>> open_cuda_device(unsigned number);

/// Fails where this build or this computer has no such GPU, or its memory has not as much free.
/// pre: spec.kind == cuda
Result<std::unique_ptr<Tier>> open_cuda_tier(const TierSpec& spec);
/// Pre-touched in 2 MiB pages, pinned once, for every GPU. Fails where there is none. pre: spec.kind ==
/// pinned
Result<std::unique_ptr<Tier>> open_pinned_tier(const TierSpec& spec);

}  // namespace terrace
