// SPDX-License-Identifier: Apache-2.0
// Device: memory and queues that the host cannot dereference. A GPU, or the fake one that tests use.
//
// Words: a queue works through what is issued to it in order, beside the host and beside other queues; an
// event is a mark in a queue that the host or another queue can wait for; a flag is a number in memory that
// the host raises and queues wait for; pinned memory is host memory that the system never moves, so that a
// device can reach it by itself.
//
// Issuing never blocks. A call that fails throws EnvironmentError, which names the device. What fails while a
// queue works is thrown by the next call that waits. A device that is lost stays lost: every later call
// throws. All functions are thread-safe; a device outlives its queues, events, pins and allocations.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "terrace/bytes.hpp"

namespace terrace {

/// Where a byte lies in a device's memory. Not a pointer, so that nobody dereferences it.
struct DeviceAddress {
  std::uint64_t value = 0;
  constexpr auto operator<=>(const DeviceAddress&) const = default;
};
constexpr DeviceAddress operator+(DeviceAddress address, std::uint64_t offset) {
  return {address.value + offset};
}

class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  /// Returns whether everything issued before the mark is complete; true if the event was never recorded.
  virtual bool done() = 0;
  /// Returns when it is.
  virtual void wait() = 0;
};

/// A number that never falls, in memory that host and device both see. It begins with zero.
class DeviceFlag {
 public:
  virtual ~DeviceFlag() = default;
  /// Queues that wait for this number or a smaller one go on. It works on a lost device, too.
  virtual void raise(std::uint32_t to) noexcept = 0;
  virtual std::uint32_t value() const noexcept = 0;
};

/// Kernels that were issued once, to be issued again and again at the cost of a single call. What they use
/// stays where it is as long as the bundle lives.
class DeviceBundle {
 public:
  virtual ~DeviceBundle() = default;
};

/// Copies take place later: the source must stay as it is, and the destination must not be used, until an
/// event recorded behind the copy is done. Host memory that takes part is pinned.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  virtual void copy_in(DeviceAddress to, const std::byte* from, Bytes bytes) = 0;
  virtual void copy_out(std::byte* to, DeviceAddress from, Bytes bytes) = 0;
  virtual void copy_within(DeviceAddress to, DeviceAddress from, Bytes bytes) = 0;
  /// Puts the event's mark here; where it was before is forgotten.
  virtual void record(DeviceEvent& event) = 0;
  /// What is issued from here on starts after the event's mark, as it is now.
  virtual void wait_for(DeviceEvent& event) = 0;
  /// What is issued from here on starts when the flag has come to `value`, which somebody must see to.
  virtual void wait_for(DeviceFlag& flag, std::uint32_t value) = 0;
  /// Raises the flag when everything issued before is complete.
  virtual void raise(DeviceFlag& flag, std::uint32_t to) = 0;
  /// From here on kernels that this thread issues are put into a bundle and do not take place, until
  /// end_bundle(). Nothing else is issued to the queue in between.
  virtual void begin_bundle() = 0;
  /// Throws where some of it cannot be issued again, or the device has no bundles; then there is none.
  virtual std::unique_ptr<DeviceBundle> end_bundle() = 0;
  /// Issues what is in the bundle, which is this queue's. The bundle outlives what it issues.
  virtual void issue(DeviceBundle& bundle) = 0;
  /// Returns when everything issued is complete.
  virtual void finish() = 0;
  /// What the device's own library calls this queue (a CUstream), for kernels that others launch; else
  /// nullptr.
  virtual void* native() noexcept { return nullptr; }
};

/// In scope means pinned.
class DevicePin {
 public:
  virtual ~DevicePin() = default;
};

/// In scope means allocated.
class DeviceAllocation {
 public:
  virtual ~DeviceAllocation() = default;
  virtual DeviceAddress address() const noexcept = 0;  ///< a multiple of 256
};

class Device {
 public:
  virtual ~Device() = default;

  /// Two devices of one name are the same: each can use the other's memory, queues and events.
  virtual const std::string& name() const noexcept = 0;
  virtual std::unique_ptr<DeviceAllocation> allocate(Bytes bytes) = 0;
  virtual std::unique_ptr<DeviceQueue> make_queue() = 0;
  virtual std::unique_ptr<DeviceEvent> make_event() = 0;
  /// Returns nullptr where queues of this device cannot wait for flags: then the host has to.
  virtual std::unique_ptr<DeviceFlag> make_flag() = 0;
  /// Pins host memory for this device, which takes long: once, not in a step. Memory that is pinned already
  /// stays so.
  virtual std::unique_ptr<DevicePin> pin(std::span<std::byte> memory) = 0;
  /// Returns whether all of this host memory is pinned for this device, by whomever.
  virtual bool reaches(std::span<const std::byte> memory) = 0;
};

/// The bytes of a tier on a device.
struct DeviceMemory {
  Device* device = nullptr;
  DeviceAddress address;
};

}  // namespace terrace
