// SPDX-License-Identifier: Apache-2.0
// The backend that computes neural networks on this computer's processor.
#pragma once

#include <memory>

#include "terrace/result.hpp"

namespace terrace {

class Backend;

/// Which implementations of a kernel a plan may choose from: those that give the same bits, or also a direct
/// convolution, without a workspace, beside Winograd's.
enum class Variants { same_bits, any };

/// Fails in a library that was built without oneDNN.
Result<std::shared_ptr<const Backend>> processor_backend(Variants variants = Variants::same_bits);

}  // namespace terrace
