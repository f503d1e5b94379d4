// SPDX-License-Identifier: Apache-2.0
// Runs another program: gives it a text on its standard input and keeps what it writes.
#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/result.hpp"

namespace terrace {

struct ChildOutcome {
  enum class End {
    exited,          ///< by itself, with `code`
    killed,          ///< by the signal `code`
    stopped,         ///< by us, since the caller asked for it
    wrote_too_much,  ///< ended by us: its output passed the limit
  };
  End end = End::exited;
  int code = 0;
  std::string out;  ///< what it wrote to its standard output
  std::string err;  ///< the end of what it wrote to its standard error
};

struct ChildLimits {
  std::size_t output = std::size_t{256} << 20U;  ///< bytes of its standard output
  std::stop_token stop = {};                     ///< looked at many times a second
};

/// Starts the program that the first word names (a path, or a name that PATH finds) with the others as its
/// arguments, and waits for its end. It may end without reading all of its input. Fails with one sentence
/// where it cannot be started. pre: there is a first word
Result<ChildOutcome> run_child(const std::vector<std::string>& command, std::string_view input,
                               const ChildLimits& limits = {});

}  // namespace terrace
