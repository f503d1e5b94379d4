// SPDX-License-Identifier: Apache-2.0
// Memory that another library owns, as tiers: what a mover needs to carry bytes to and from its tensors.
//
// A borrowed tier is all of the host's memory, or all of one device's: an extent there is an address. The
// owner keeps the bytes alive and leaves them alone while a transfer uses them. Host memory that its owner
// has pinned travels directly, any other by way of the mover's own pinned memory.
#pragma once

#include <memory>

#include "terrace/mover.hpp"

namespace terrace {

std::unique_ptr<Tier> borrow_host_memory();
std::unique_ptr<Tier> borrow_device_memory(std::shared_ptr<Device> device);

/// pre: `tier` is borrowed host memory
Extent borrowed_extent(TierId tier, const std::byte* memory, Bytes bytes);
/// pre: `tier` is borrowed memory of the device that gave the address
Extent borrowed_extent(TierId tier, DeviceAddress address, Bytes bytes);

}  // namespace terrace
