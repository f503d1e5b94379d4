// SPDX-License-Identifier: Apache-2.0
// FaultHook: this process's handler of protection faults, in front of the one the program has.
//
// In scope means installed. The sink is asked about every fault on mapped memory that its protection forbids;
// what it does not take, and every other SIGSEGV, goes to the handler that was installed before, with the
// mask and flags it asked for, or has the default effect. When the hook ends, that handler is back; one that
// the program installed meanwhile stays. A process has one signal table, so there is one hook at a time.
#pragma once

#include <cstddef>

#include "terrace/result.hpp"
#include "terrace/tier.hpp"

namespace terrace {

/// Called in a signal handler with all signals blocked, by several threads at once: no allocation, no lock
/// that another signal handler's thread may hold, nothing that faults.
class FaultSink {
 public:
  /// Returns whether the instruction is to be tried again.
  virtual bool on_fault(const std::byte* address, Access access) noexcept = 0;

 protected:
  ~FaultSink() = default;
};

class FaultHook {
 public:
  /// Fails where there is a hook already, and on processors whose faults do not tell reads from writes. The
  /// sink outlives the hook.
  static Result<FaultHook> install(FaultSink& sink);
  FaultHook(FaultHook&& other) noexcept : installed_(other.installed_) { other.installed_ = false; }
  FaultHook& operator=(FaultHook&&) = delete;
  /// Waits until no thread is in the sink any more.
  ~FaultHook();

 private:
  FaultHook() = default;
  bool installed_ = true;
};

}  // namespace terrace
