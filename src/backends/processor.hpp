// The backend that computes neural networks on this computer's processor.
#pragma once

#include <memory>

#include "terrace/result.hpp"

namespace terrace {

class Backend;

/// Fails in a library that was built without oneDNN.
Result<std::shared_ptr<const Backend>> processor_backend();

}  // namespace terrace
