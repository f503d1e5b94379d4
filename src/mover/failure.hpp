// Failure: why a job failed, as plain data. Each thread that is told gets an exception of its own, so that no
// two threads ever read one exception object.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "terrace/error.hpp"

namespace terrace {

class Failure {
 public:
  explicit Failure(const EnvironmentError& error) : message_(error.what()), place_(error.place()) {}

  /// The exception being handled.
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
  std::exception_ptr other_;  // what is no EnvironmentError: a bug, or no memory left
};

}  // namespace terrace
