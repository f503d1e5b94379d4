// Result holds an expected outcome: a value, or the reason why there is none.
//
// A function whose failure is part of normal life (a tier is full, a spec is misspelt) returns `Result`. A
// failing environment throws `EnvironmentError` (error.hpp), and a bug in the caller throws std::logic_error.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace terrace {

enum class ErrorCode {
  invalid_argument,  ///< the request itself is wrong: it is misspelt, zero or out of range
  tier_full,         ///< no hole is large enough now; one may become free later
  too_large,         ///< the request is larger than the tier will ever hold
  pinned,            ///< an object in the way is pinned and may not move
  retired,           ///< the object was declared dead
  unsupported,       ///< this computer or this build does not offer it
  stopped,           ///< a stop was requested before the work was done
  inconsistent,      ///< a check of the library's own state failed, which is a bug in the library
};

/// `message` is one sentence for the user: what was asked, what was there, what to try.
struct Error {
  ErrorCode code;
  std::string message;
};

/// Result::value() throws this when there is no value, for callers who cannot go on without one.
class ResultError : public std::runtime_error {
 public:
  explicit ResultError(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const noexcept { return state_.index() == 0; }
  bool ok() const noexcept { return state_.index() == 0; }

  /// pre: ok()
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  /// pre: !ok()
  const Error& error() const { return *std::get_if<1>(&state_); }

  /// Returns the value, or throws ResultError where there is none.
  T& value() & { return require(), **this; }
  const T& value() const& { return require(), **this; }
  T&& value() && { return require(), std::move(**this); }

 private:
  void require() const {
    if (!ok()) throw ResultError(error());
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const noexcept { return ok(); }
  bool ok() const noexcept { return state_.index() == 0; }
  const Error& error() const { return *std::get_if<1>(&state_); }
  void value() const {
    if (!ok()) throw ResultError(error());
  }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace terrace
