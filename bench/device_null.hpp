// SPDX-License-Identifier: Apache-2.0
// A device that does nothing and takes no time: what remains is the host's own cost of issuing to it.
#pragma once

#include <atomic>
#include <memory>

#include "terrace/tier.hpp"
#include "tiers/device_tier.hpp"
#include "tiers/memory_tier.hpp"

namespace terrace::bench {

class NullDevice final : public Device {
 public:
  const std::string& name() const noexcept override { return name_; }
  std::unique_ptr<DeviceAllocation> allocate(Bytes) override { return std::make_unique<Allocation>(); }
  std::unique_ptr<DeviceQueue> make_queue() override { return std::make_unique<Queue>(calls); }
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<Event>(); }
  std::unique_ptr<DeviceFlag> make_flag() override { return std::make_unique<Flag>(); }
  std::unique_ptr<DevicePin> pin(std::span<std::byte>) override { return std::make_unique<DevicePin>(); }
  bool reaches(std::span<const std::byte>) override { return true; }

  std::uint64_t calls = 0;  ///< that issued something

 private:
  struct Allocation final : DeviceAllocation {
    DeviceAddress address() const noexcept override { return {4096}; }
  };
  struct Event final : DeviceEvent {
    bool done() override { return true; }
    void wait() override {}
  };
  struct Flag final : DeviceFlag {
    void raise(std::uint32_t to) noexcept override { value_ = to; }
    std::uint32_t value() const noexcept override { return value_; }
    std::atomic<std::uint32_t> value_ = 0;
  };
  struct Queue final : DeviceQueue {
    explicit Queue(std::uint64_t& the_calls) : calls(the_calls) {}
    void copy_in(DeviceAddress, const std::byte*, Bytes) override { ++calls; }
    void copy_out(std::byte*, DeviceAddress, Bytes) override { ++calls; }
    void copy_within(DeviceAddress, DeviceAddress, Bytes) override { ++calls; }
    void record(DeviceEvent&) override { ++calls; }
    void wait_for(DeviceEvent&) override { ++calls; }
    void wait_for(DeviceFlag&, std::uint32_t) override { ++calls; }
    void raise(DeviceFlag&, std::uint32_t) override { ++calls; }
    void finish() override {}
    std::uint64_t& calls;
  };

  const std::string name_ = "null device";
};

/// Opens a device tier on it, and plain memory for everything else.
inline Result<std::unique_ptr<Tier>> open_on(const std::shared_ptr<Device>& device, const TierSpec& spec) {
  if (spec.kind != TierKind::cuda && !spec.on_device) {
    TierSpec memory;
    memory.capacity = spec.capacity;
    return open_tier(memory);
  }
  TierDescription description = describe(spec, kDeviceGranule).value();
  description.addressable = false;
  return std::unique_ptr<Tier>(std::make_unique<DeviceTier>(std::move(description), device));
}

}  // namespace terrace::bench
