// SPDX-License-Identifier: Apache-2.0
#include "cli/version.hpp"

#include "terrace/version.hpp"

// Generated at every build, so only this file includes it.
#if __has_include("terrace_commit.hpp")
#include "terrace_commit.hpp"
#endif
#ifndef TERRACE_COMMIT
#define TERRACE_COMMIT "unknown"
#endif
#ifndef TERRACE_FEATURES
#define TERRACE_FEATURES "nothing optional"
#endif

namespace terrace::cli {

std::string version_text() {
  return "terrace " TERRACE_VERSION " (commit " TERRACE_COMMIT "; with " TERRACE_FEATURES ")";
}

}  // namespace terrace::cli
