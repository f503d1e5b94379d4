// SPDX-License-Identifier: Apache-2.0
// Tiers that a device makes: its own memory, one allocation made at opening; and host memory pinned for it.
#pragma once

#include <memory>
#include <utility>

#include "terrace/tier.hpp"
#include "tiers/mapping.hpp"

namespace terrace {

/// Regions on a device start where its libraries want them to.
constexpr Bytes kDeviceGranule{256};

class DeviceTier final : public Tier {
 public:
  /// Allocates the description's capacity.
  DeviceTier(TierDescription description, std::shared_ptr<Device> device)
      : description_(std::move(description)),
        device_(std::move(device)),
        allocation_(device_->allocate(description_.capacity)),
        memory_{device_.get(), allocation_->address()} {}

  const TierDescription& description() const noexcept override { return description_; }
  const DeviceMemory* device() noexcept override { return &memory_; }

 private:
  const TierDescription description_;
  const std::shared_ptr<Device> device_;
  const std::unique_ptr<DeviceAllocation> allocation_;
  const DeviceMemory memory_;
};

class PinnedTier final : public Tier {
 public:
  /// Pins the mapping.
  PinnedTier(TierDescription description, Mapping mapping, std::shared_ptr<Device> device)
      : description_(std::move(description)),
        device_(std::move(device)),
        mapping_(std::move(mapping)),
        pin_(device_->pin(mapping_.bytes())) {}

  const TierDescription& description() const noexcept override { return description_; }
  std::byte* memory() noexcept override { return mapping_.data(); }

 private:
  const TierDescription description_;
  const std::shared_ptr<Device> device_;
  const Mapping mapping_;
  const std::unique_ptr<DevicePin> pin_;
};

}  // namespace terrace
