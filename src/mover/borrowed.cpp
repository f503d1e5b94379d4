// SPDX-License-Identifier: Apache-2.0
#include "terrace/borrowed.hpp"

#include "tiers/memory_tier.hpp"

namespace terrace {
namespace {

// No system gives memory below this address, and a tier's memory is never at nullptr.
constexpr std::uint64_t kFirstAddress = 1u << 16;
constexpr Bytes kEveryAddress{std::uint64_t{1} << 62};

TierDescription describe_borrowed(std::string name) {
  TierDescription description;
  description.name = std::move(name);
  description.capacity = kEveryAddress;
  description.granularity = Bytes{1};
  description.write_threads = memory_copy_threads();
  return description;
}

class BorrowedHost final : public Tier {
 public:
  const TierDescription& description() const noexcept override { return description_; }
  std::byte* memory() noexcept override { return reinterpret_cast<std::byte*>(kFirstAddress); }
  bool borrowed() const noexcept override { return true; }

 private:
  const TierDescription description_ = describe_borrowed("borrowed host memory");
};

class BorrowedDevice final : public Tier {
 public:
  explicit BorrowedDevice(std::shared_ptr<Device> device)
      : device_(std::move(device)), memory_{device_.get(), {}} {
    description_ = describe_borrowed("borrowed memory of " + device_->name());
    description_.addressable = false;
  }
  const TierDescription& description() const noexcept override { return description_; }
  const DeviceMemory* device() noexcept override { return &memory_; }
  bool borrowed() const noexcept override { return true; }

 private:
  const std::shared_ptr<Device> device_;
  const DeviceMemory memory_;
  TierDescription description_;
};

}  // namespace

std::unique_ptr<Tier> borrow_host_memory() { return std::make_unique<BorrowedHost>(); }

std::unique_ptr<Tier> borrow_device_memory(std::shared_ptr<Device> device) {
  return std::make_unique<BorrowedDevice>(std::move(device));
}

Extent borrowed_extent(TierId tier, const std::byte* memory, Bytes bytes) {
  return {tier, reinterpret_cast<std::uint64_t>(memory) - kFirstAddress, bytes};
}

Extent borrowed_extent(TierId tier, DeviceAddress address, Bytes bytes) {
  return {tier, address.value, bytes};
}

}  // namespace terrace
