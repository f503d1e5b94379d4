// ProgressSink: whoever wants to know what long work is doing now.
#pragma once

#include <functional>
#include <string>

namespace terrace {

/// Called on the thread that does the work, with a few words that need no context, such as
/// `measuring kernels, 12/40`. What it throws ends the work and reaches the caller.
using ProgressSink = std::function<void(const std::string&)>;

/// For those who do not want to know.
inline void no_progress(const std::string&) {}

}  // namespace terrace
