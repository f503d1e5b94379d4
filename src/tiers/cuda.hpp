// SPDX-License-Identifier: Apache-2.0
// An NVIDIA GPU as a device. kinds.hpp opens its tiers.
#pragma once

#include <memory>
#include <optional>

#include "terrace/tier.hpp"

namespace terrace {

/// The GPU of that number, used through its primary context, the one that CUDA's runtime and PyTorch use.
/// Fails with unsupported where this build or this computer has no such GPU.
Result<std::shared_ptr<Device>> open_cuda_device(unsigned number);

/// Returns how much memory the GPU of that number has free. Fails as opening it does.
Result<Bytes> free_on_gpu(unsigned number);

/// Returns which GPU the device is; nothing where it is none.
std::optional<unsigned> gpu_number(const Device& device);

}  // namespace terrace
