// SPDX-License-Identifier: Apache-2.0
// A kernel that a device's queue runs: it is issued, and takes place later. Operands are addresses in memory
// that the device reaches.
#pragma once

#include <span>

#include "backends/kernel.hpp"
#include "base/check.hpp"
#include "terrace/device.hpp"

namespace terrace {

class QueuedKernel : public RunnableKernel {
 public:
  /// Issues the kernel and returns; operands as those of run(), and a workspace that the variant does not
  /// need has the address zero. Throws EnvironmentError where the device does.
  virtual void enqueue(std::span<const DeviceAddress> operands, const StepContext& context,
                       DeviceQueue& queue) = 0;

  void run(std::span<std::byte* const>, const StepContext&) final {
    check(false, "a queue's kernel is issued to a queue");
  }
};

}  // namespace terrace
