// A Failure says as plain data why a job failed. Each waiting thread gets an exception of its own, so that no
// two threads read one exception object.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "terrace/error.hpp"

namespace terrace {

class Failure {
 public:
  explicit Failure(const EnvironmentError& error) : message_(error.what()), place_(error.place()) {}

  /// Captures the exception that is being handled.
  static Failure current() {
    try {
      throw;
    } catch (const EnvironmentError& error) {
      return Failure(error);
    } catch (...) {
      return Failure(std::current_exception());
    }
  }

  [[noreturn]] void raise() const {
    if (other_) std::rethrow_exception(other_);
    throw EnvironmentError(message_, place_);
  }

 private:
  explicit Failure(std::exception_ptr other) : other_(std::move(other)) {}

  std::string message_;
  EnvironmentError::Place place_;
  std::exception_ptr other_;  // anything but an EnvironmentError: a bug, or out of memory
};

}  // namespace terrace
