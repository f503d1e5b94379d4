// Expected outcomes: a value, or the reason why there is none.
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
  invalid_argument,  ///< the request itself is wrong: misspelt, zero, out of range
  tier_full,         ///< no hole large enough; others may become free
  too_large,         ///< larger than the tier will ever hold
  pinned,            ///< something in the way is in use and may not move
  retired,           ///< the object was declared dead
  unsupported,       ///< this computer or build does not offer it
  stopped,           ///< whoever asked no longer wants it
  inconsistent,      ///< a check of the library's own state failed: a bug of ours
};

/// `message` is one sentence for the user: what was asked, what was there, what to try.
struct Error {
  ErrorCode code;
  std::string message;
};

/// Thrown by Result::value() when there is none, for callers who treat an expected failure as the end.
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

  /// The value, or throws ResultError.
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
