// SPDX-License-Identifier: Apache-2.0
#include "ann/team.hpp"

#include "base/check.hpp"

namespace terrace::ann {

Team::Team(unsigned size) : failures_(size) {
  check(size >= 1, "a team has its caller");
  try {
    for (unsigned member = 1; member < size; ++member)
      helpers_.emplace_back([this, member] { help(member); });
  } catch (...) {
    start_all();
    for (std::thread& helper : helpers_) helper.join();
    throw;
  }
}

Team::~Team() {
  job_ = nullptr;
  start_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Team::start_all() {
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
}

void Team::run(const std::function<void(unsigned)>& job) {
  job_ = &job;
  for (std::exception_ptr& failure : failures_) failure = nullptr;
  working_.store(static_cast<std::uint32_t>(helpers_.size()), std::memory_order_relaxed);
  start_all();
  attempt(0);
  for (std::uint32_t left = working_.load(std::memory_order_acquire); left > 0;
       left = working_.load(std::memory_order_acquire))
    working_.wait(left, std::memory_order_acquire);
  for (const std::exception_ptr& failure : failures_) {
    if (failure) std::rethrow_exception(failure);
  }
}

void Team::help(unsigned member) {
  for (std::uint32_t seen = 0;;) {
    started_.wait(seen, std::memory_order_acquire);
    ++seen;
    if (job_ == nullptr) return;
    attempt(member);
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) working_.notify_one();
  }
}

void Team::attempt(unsigned member) {
  try {
    (*job_)(member);
  } catch (...) {
    failures_[member] = std::current_exception();
  }
}

}  // namespace terrace::ann
