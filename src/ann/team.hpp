// SPDX-License-Identifier: Apache-2.0
// Team: threads that work on one query together. The caller is one of them. One caller at a time.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace terrace::ann {

class Team {
 public:
  /// `size` counts the caller. Throws std::system_error where the system starts no thread. pre: size >= 1
  explicit Team(unsigned size);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  unsigned size() const { return static_cast<unsigned>(helpers_.size()) + 1; }

  /// Calls `job(member)` once in every member, 0 being the caller, and returns when all are done. Throws what
  /// a member threw; of several the first.
  void run(const std::function<void(unsigned member)>& job);

 private:
  void help(unsigned member);
  void attempt(unsigned member);
  void start_all();

  const std::function<void(unsigned)>* job_ = nullptr;  // null: it is over
  std::atomic<std::uint32_t> started_{0};               // jobs so far; helpers wait for the next
  std::atomic<std::uint32_t> working_{0};               // helpers that are not done yet
  std::vector<std::exception_ptr> failures_;            // by member
  std::vector<std::thread> helpers_;
};

}  // namespace terrace::ann
