// SPDX-License-Identifier: Apache-2.0
// OpenTiers: the tiers of a machine that a run may use, opened to its budget, and the mover between them.
//
// Tiers keep the numbers they have in the machine. Move-only; once open, any number of threads may use it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "terrace/machine.hpp"
#include "terrace/mover.hpp"
#include "terrace/tier.hpp"

namespace terrace {

/// Where a region begins: a tier, and an offset in it.
struct TierAddress {
  TierId tier;
  std::uint64_t offset = 0;
};

/// Where a program's kernels run.
enum class KernelsOn { host, device };

class OpenTiers {
 public:
  struct Request {
    const std::string& user;  ///< for messages: what the tiers are for
    const Machine& machine;
    const std::vector<Bytes>& budget;  ///< one for each tier; zero: it stays closed
    std::function<Result<std::unique_ptr<Tier>>(const TierSpec&)> open = {};  ///< else `open_tier`
    KernelsOn kernels = KernelsOn::host;
    std::function<Result<Bytes>(unsigned gpu)> free_on_gpu = {};  ///< else as the driver says
  };

  /// Memory, of the host and of each GPU, is asked for only when all of it is there and every disk has been
  /// opened. Fails, too, where a tier has no spec or is not what the machine says.
  static Result<OpenTiers> open(const Request& request);

  OpenTiers() = default;

  /// How many tiers the machine has, those that stay closed included.
  std::size_t count() const { return tiers_.size(); }
  bool is_open(TierId id) const { return id.index < tiers_.size() && tiers_[id.index] != nullptr; }
  /// pre: is_open(id)
  Tier& operator[](TierId id) const;
  /// The address in memory; nullptr where kernels cannot use the tier in place.
  std::byte* at(TierAddress address) const;
  /// The device that tiers lie on; nullptr where none does.
  Device* device() const { return device_; }
  /// Whether the device reaches all of the tier by itself. pre: is_open(id), device() != nullptr
  bool is_on_device(TierId id) const;
  /// The address as the device's kernels and copies use it. pre: is_on_device(address.tier)
  DeviceAddress device_address(TierAddress address) const;
  /// The same stretch as the mover names it.
  Extent extent(TierAddress address, Bytes bytes) const;
  Mover& mover() const { return *mover_; }

  /// Copies between any memory and a tier, beside what a plan moves. Throws EnvironmentError where a disk
  /// fails. A write may change what lies behind it, up to the tier's granularity.
  void read(TierAddress from, std::span<std::byte> to) const;
  void write(std::span<const std::byte> from, TierAddress to) const;

 private:
  Result<void> find_device(const std::string& user);
  void start_mover();

  std::vector<std::unique_ptr<Tier>> tiers_;  // nullptr: closed
  Device* device_ = nullptr;
  std::vector<bool> on_device_;    // by tier
  std::unique_ptr<Tier> staging_;  // where the host has no address of some tier
  std::unique_ptr<DevicePin> staging_pin_;
  std::unique_ptr<std::mutex> staging_use_;
  std::vector<std::uint32_t> numbers_;  // of the tiers in the mover
  std::uint32_t staging_number_ = 0;
  std::unique_ptr<Mover> mover_;  // last: it uses the tiers until it ends
};

}  // namespace terrace
