// SPDX-License-Identifier: Apache-2.0
// Which build this is.
#pragma once

#include <string>

namespace terrace::cli {

/// `terrace 0.1.0 (commit 1a2b3c4; with oneDNN, io_uring, NUMA, CBC)`: what was there when it was built.
std::string version_text();

}  // namespace terrace::cli
