// SPDX-License-Identifier: Apache-2.0
// Whether tests may take minutes: with the environment variable TERRACE_LONG, as `make long` sets it. Without it
// a test stays below five seconds, by looking at fewer of its cases or by skipping itself.
#pragma once

#include <cstdlib>

namespace terrace {

inline bool long_tests() { return std::getenv("TERRACE_LONG") != nullptr; }

/// The number of cases to look at: `few` usually, `all` in long tests.
inline int few_or_all(int few, int all) { return long_tests() ? all : few; }

}  // namespace terrace
