// SPDX-License-Identifier: Apache-2.0
// DeviceEngine: carries bytes between one device and host memory pinned for it, and within the device.
//
// Each direction has a queue of the device, which is what its copy engines are, and a thread that closes
// transfers in the order they were issued. Copies whose bytes lie side by side on both sides are issued as
// one. A queue knows no priorities: what was started first arrives first. Thread-safe.
//
// An event between two copies costs the copy engine more than a microsecond, which is a twentieth of a copy
// of 1 MiB. So small transfers that follow each other share an event, up to a few MiB of them.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mover/ticket.hpp"
#include "terrace/tier.hpp"

namespace terrace {

enum class Direction { in, out, within };

/// From and to are addresses, the host's or the device's, as the direction says.
struct DeviceCopy {
  std::uint64_t from = 0, to = 0, bytes = 0;
};

/// Which way bytes go. pre: at least one of the tiers is on a device
Direction direction_between(Tier& from, Tier& to);
/// The address of a tier's byte, the host's or the device's. pre: the tier has no blocks
std::uint64_t address_in(Tier& tier, std::uint64_t offset);
void issue_copy(DeviceQueue& queue, Direction direction, const DeviceCopy& copy);

/// What one direction of a device is asked to carry, waited for as one.
class DeviceTask {
 public:
  /// `tier` and `offset` are named in the message where it fails.
  DeviceTask(Ticket& ticket, Direction direction, Tier& tier, std::uint64_t offset,
             std::vector<DeviceCopy> copies);
  virtual ~DeviceTask() = default;

  /// Nothing of it is under way any more. `complete` unless its ticket failed.
  virtual void finished(bool complete) noexcept = 0;

  Ticket& ticket() const noexcept { return *ticket_; }
  Direction direction() const noexcept { return direction_; }
  Bytes bytes() const noexcept { return bytes_; }
  /// Starts every copy. Throws EnvironmentError where the device does.
  void issue(DeviceQueue& queue) const;
  /// Keeps the exception being handled, with its place, as the ticket's failure.
  void fail() noexcept;

 private:
  Ticket* ticket_;
  Direction direction_;
  Tier* tier_;
  std::uint64_t offset_;
  std::vector<DeviceCopy> copies_;  // no two of them neighbours
  Bytes bytes_;
};

class DeviceEngine {
 public:
  /// Borrows the device.
  explicit DeviceEngine(Device& device);

  Device& device() const noexcept { return device_; }
  void start(std::shared_ptr<DeviceTask> task);
  /// Finishes everything started, then ends the threads. pre: nothing is started any more
  void stop() noexcept;

 private:
  class Lane {
   public:
    explicit Lane(Device& device);
    ~Lane() { stop(); }
    Lane(const Lane&) = delete;
    void start(std::shared_ptr<DeviceTask> task);
    void stop() noexcept;

   private:
    struct Entry {
      std::shared_ptr<DeviceTask> task;
      std::unique_ptr<DeviceEvent> event;  // reached when this and all before it are done
      bool refused = false;                // the device took no event or not all copies
      bool ends_a_group() const { return event != nullptr || refused; }
    };
    void run() noexcept;
    void mark(Entry& entry) noexcept;
    std::vector<Entry> take_group() noexcept;
    void see_through(std::vector<Entry>& group) noexcept;

    Device& device_;
    const std::unique_ptr<DeviceQueue> queue_;
    std::mutex mutex_;  // guards all below
    std::condition_variable changed_;
    std::deque<Entry> under_way_;
    Bytes unmarked_;  // issued since the last event
    std::vector<std::unique_ptr<DeviceEvent>> spare_;
    bool stopping_ = false;
    std::thread thread_;
  };

  Device& device_;
  std::array<std::unique_ptr<Lane>, 3> lanes_;  // by direction
};

}  // namespace terrace
