// SPDX-License-Identifier: Apache-2.0
// Kernels of any program, given as callbacks by the names of their operations: so a step that is no neural
// network can be profiled, planned, verified and executed like one.
//
//   Graph graph = ...;                                      // its kernels' operations are names of your own
//   auto backend = foreign_backend({{"smooth", smooth}});
//   Program program = compile(graph, backend).value();      // program.hpp
//
// A callback computes all outputs from the inputs and nothing else: it may be run again, at other addresses,
// and on numbers that mean nothing while it is timed. What it keeps elsewhere, as a random generator does, is
// a tensor of kind `token` among its inputs and outputs; then it runs once in a step, in order, and is not
// timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "terrace/device.hpp"
#include "terrace/graph.hpp"

namespace terrace {

class Backend;

/// One run of a kernel.
struct ForeignRun {
  const Kernel& kernel;
  /// Whole tensors, in the order of the kernel's operands. A tensor that is read and written is one memory.
  std::span<const std::span<std::byte>> inputs, outputs;
  std::span<std::byte> workspace;  ///< undefined before and after; empty: the variant needs none
  std::string_view variant = {};   ///< the name of the one to run; empty: there is one alone, without a name
  std::uint64_t seed = 0, step = 0;  ///< steps are counted from zero

  /// Operands as numbers of their type. pre: T is as large as the type
  template <class T>
  std::span<const T> input(std::size_t index) const {
    return {reinterpret_cast<const T*>(inputs[index].data()), inputs[index].size() / sizeof(T)};
  }
  template <class T>
  std::span<T> output(std::size_t index) const {
    return {reinterpret_cast<T*>(outputs[index].data()), outputs[index].size() / sizeof(T)};
  }
};

using ForeignKernel = std::function<void(const ForeignRun&)>;

/// Bytes in memory that a device reaches.
struct DeviceBytes {
  DeviceAddress address;
  Bytes size;
};

/// One run of a kernel on a device's queue.
struct ForeignLaunch {
  const Kernel& kernel;
  std::span<const DeviceBytes> inputs, outputs;  ///< as those of a run
  DeviceBytes workspace;                         ///< size zero: the variant needs none
  std::string_view variant = {};
  std::uint64_t seed = 0, step = 0;
  DeviceQueue& queue;  ///< queue.native() is what the device's own library calls it (a CUstream)
};

/// Issues work to the queue and returns before it takes place.
using ForeignLauncher = std::function<void(const ForeignLaunch&)>;

/// Makes a backend of callbacks. Whatever a callback throws ends the step that runs it. `version`: of the
/// code behind the callbacks; times that were measured and kept hold for one version.
std::shared_ptr<const Backend> foreign_backend(std::map<std::string, ForeignKernel> by_operation,
                                               std::string version = "");
/// Makes a backend of kernels that a device's queues run.
std::shared_ptr<const Backend> foreign_device_backend(std::map<std::string, ForeignLauncher> by_operation,
                                                      std::string version = "");

}  // namespace terrace
