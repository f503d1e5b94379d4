// SPDX-License-Identifier: Apache-2.0
#include "capi/guard.hpp"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "base/json_reader.hpp"
#include "terrace/version.hpp"

namespace terrace::capi {
namespace {

/// The last error of a thread. It has a fixed size, so that remembering it never fails.
struct LastError {
  char sentence[4096] = "";
  int cause = 0;
};

LastError& last_error() noexcept {
  thread_local LastError error;
  return error;
}

int failed_with(terrace_status status, const char* sentence, int cause = 0) noexcept {
  remember(sentence, cause);
  return status;
}

}  // namespace

void remember(const char* sentence, int cause) noexcept {
  LastError& error = last_error();
  std::strncpy(error.sentence, sentence, sizeof error.sentence - 1);
  error.cause = cause;
}

terrace_status status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::tier_full:
    case ErrorCode::too_large:
      return TERRACE_NO_ROOM;
    case ErrorCode::unsupported:
      return TERRACE_UNSUPPORTED;
    case ErrorCode::stopped:
      return TERRACE_STOPPED;
    case ErrorCode::inconsistent:
      return TERRACE_BUG;
    case ErrorCode::invalid_argument:
    case ErrorCode::pinned:
    case ErrorCode::retired:
      break;
  }
  return TERRACE_INVALID;
}

int failed() noexcept {
  try {
    throw;
  } catch (const ResultError& error) {
    return failed_with(status_of(error.error().code), error.what());
  } catch (const EnvironmentError& error) {
    return failed_with(TERRACE_ENVIRONMENT, error.what(), error.place().cause);
  } catch (const CallbackEnded& error) {
    return failed_with(TERRACE_CALLBACK, error.what());
  } catch (const JsonError& error) {
    return failed_with(TERRACE_INVALID, error.what());
  } catch (const std::invalid_argument& error) {
    return failed_with(TERRACE_INVALID, error.what());
  } catch (const std::bad_alloc&) {
    return failed_with(TERRACE_ENVIRONMENT,
                       "the system refuses memory: free some, or give less work at once");
  } catch (const std::exception& error) {
    return failed_with(TERRACE_BUG, error.what());
  } catch (...) {
    return failed_with(TERRACE_BUG, "something that is no exception was thrown");
  }
}

void require(bool given, const char* what) {
  if (!given) throw std::invalid_argument(what);
}

char* copied(const std::string& text) {
  char* made = static_cast<char*>(std::malloc(text.size() + 1));
  if (made == nullptr) throw std::bad_alloc();
  std::memcpy(made, text.c_str(), text.size() + 1);
  return made;
}

}  // namespace terrace::capi

uint32_t terrace_abi_version(void) { return TERRACE_ABI_VERSION; }
const char* terrace_version(void) { return TERRACE_VERSION; }
const char* terrace_last_error(void) { return terrace::capi::last_error().sentence; }
int terrace_last_error_cause(void) { return terrace::capi::last_error().cause; }
void terrace_text_free(char* text) { std::free(text); }
