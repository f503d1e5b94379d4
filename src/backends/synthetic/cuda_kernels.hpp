// SPDX-License-Identifier: Apache-2.0
// The synthetic kernels for NVIDIA GPUs. Their code was compiled by the CUDA toolkit and lies inside of this
// program; the driver loads it.
#pragma once

#include <memory>

#include "backends/synthetic/synthetic.hpp"

namespace terrace {

/// Fails where the device is no GPU, where the build had no CUDA compiler, and where the driver is too old
/// for what that one made.
Result<std::unique_ptr<SyntheticKernels>> cuda_kernels(Device& device);

}  // namespace terrace
