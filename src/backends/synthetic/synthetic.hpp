// SPDX-License-Identifier: Apache-2.0
// Synthetic kernels: work for queues without any meaning, to measure and to test what surrounds kernels.
//
//   mix      writes bytes that depend on every byte it reads, so that any mistake with them is seen
//   stream   reads and writes each byte once, as fast as the device's memory allows
//   spin     keeps the device's queue busy for a while
//   compute  multiplies and adds single-precision numbers on all of the device, without memory
//
// They exist for GPUs, where the CUDA toolkit was there when this was built, and for fake devices. A mix on
// the host gives the same bits. Thread-safe.
#pragma once

#include <memory>
#include <span>

#include "terrace/foreign.hpp"
#include "terrace/result.hpp"

namespace terrace {

class SyntheticKernels {
 public:
  virtual ~SyntheticKernels() = default;
  /// Kernels of one queue take place in order, and only then may two of them use the same memory.
  virtual void mix(DeviceQueue& queue, std::span<const DeviceBytes> inputs,
                   std::span<const DeviceBytes> outputs, std::uint64_t salt) = 0;
  virtual void stream(DeviceQueue& queue, DeviceBytes to, DeviceAddress from) = 0;
  /// Zero: an empty kernel.
  virtual void spin(DeviceQueue& queue, Seconds time) = 0;
  /// Returns how many operations that is. `scratch`: some bytes of the device's.
  virtual double compute(DeviceQueue& queue, DeviceAddress scratch) = 0;
};

/// Kernels for queues of this device, which outlives them. Fails where there are none for it.
Result<std::unique_ptr<SyntheticKernels>> synthetic_kernels(Device& device);

void mix_on_host(std::span<const std::span<std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
                 std::uint64_t salt);

/// Differs from kernel to kernel, step to step and seed to seed.
std::uint64_t salt_of(const Kernel& kernel, std::uint64_t seed, std::uint64_t step);
/// Backends that mix, whatever the operation of that name is called.
std::shared_ptr<const Backend> mixing_backend(const std::string& operation);
/// `kernels` outlive it.
std::shared_ptr<const Backend> mixing_device_backend(const std::string& operation, SyntheticKernels& kernels);

}  // namespace terrace
