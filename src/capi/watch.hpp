// SPDX-License-Identifier: Apache-2.0
// A watch of the C interface as the library takes it: a progress sink that may end the work, and a stop
// token.
#pragma once

#include <stop_token>

#include "terrace/progress.hpp"
#include "terrace/result.hpp"
#include "terrace/terrace.h"

struct terrace_stop {
  std::stop_source source;
};

namespace terrace::capi {

inline Error stopped() { return {ErrorCode::stopped, "the work was stopped before its end"}; }

inline std::stop_token token_of(const terrace_watch* watch) {
  return watch != nullptr && watch->stop != nullptr ? watch->stop->source.get_token() : std::stop_token{};
}

/// Throws where a stop was requested or the caller's function says so.
inline ProgressSink sink_of(const terrace_watch* watch) {
  if (watch == nullptr) return no_progress;
  return [watch](const std::string& what) {
    if (token_of(watch).stop_requested()) throw ResultError(stopped());
    if (watch->progress != nullptr && watch->progress(watch->user, what.c_str()) != 0)
      throw ResultError(stopped());
  };
}

}  // namespace terrace::capi
