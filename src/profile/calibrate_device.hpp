// SPDX-License-Identifier: Apache-2.0
// Calibration of a device: a machine whose first tier is a GPU's memory, measured in about a minute.
//
// Opens a small part of every tier, measures the device's memory and arithmetic with synthetic kernels, and
// each link from 64 KiB up: alone, against the opposite direction, and beside a kernel that uses memory as
// fast as it can. Links that the device serves by itself are measured on its queues, as plans use them; the
// others through the mover.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "terrace/machine.hpp"
#include "terrace/tier.hpp"

namespace terrace {

struct DeviceCalibrateOptions {
  TierSpec fast;               ///< where kernels run: cuda:0:100GiB
  std::vector<TierSpec> slow;  ///< the others, the fastest first
  /// The sizes of transfers that are measured, in ascending order.
  std::vector<Bytes> sizes{{64U << 10U}, {256U << 10U}, {1U << 20U},  {4U << 20U},
                           {16U << 20U}, {64U << 20U},  {256U << 20U}};
  unsigned rounds = 5;  ///< how often everything is measured; the median counts
  Seconds round{0.05};  ///< a round of a link takes about so long
  std::function<Result<std::unique_ptr<Tier>>(const TierSpec&)> open = {};  ///< else open_tier
  std::function<void(std::string_view what, double share)> progress = [](std::string_view, double) {};
};

/// The machine is named `this` and valid; kernels use its first tier alone, whose latency is what an empty
/// kernel takes behind others. Fails where a tier cannot be opened or the device has no synthetic kernels;
/// throws EnvironmentError where the device or a disk fails. pre: rounds > 0, there is a size
Result<Machine> calibrate_device(const DeviceCalibrateOptions& options);

}  // namespace terrace
