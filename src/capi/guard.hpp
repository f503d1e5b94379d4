// SPDX-License-Identifier: Apache-2.0
// Guard: the border between C++ and C. Whatever goes wrong behind it becomes a status, with a sentence that
// the calling thread can ask for.
#pragma once

#include <new>
#include <string>
#include <utility>

#include "terrace/error.hpp"
#include "terrace/result.hpp"
#include "terrace/terrace.h"

namespace terrace::capi {

/// Ends a step because a callback of the caller said so.
class CallbackEnded : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Keeps what the calling thread may ask for.
void remember(const char* sentence, int cause) noexcept;
terrace_status status_of(ErrorCode code) noexcept;
/// The status of the exception in flight, remembered. pre: within a catch block
int failed() noexcept;

/// Throws where a pointer that the contract wants is missing.
void require(bool given, const char* what);

/// A text that terrace_text_free frees.
char* copied(const std::string& text);

template <class Work>
int guarded(Work work) noexcept {
  try {
    work();
    return TERRACE_OK;
  } catch (...) {
    return failed();
  }
}

template <class T>
T expect(Result<T> result) {
  return std::move(result).value();
}
inline void expect(const Result<void>& result) { result.value(); }

}  // namespace terrace::capi
