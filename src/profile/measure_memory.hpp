// SPDX-License-Identifier: Apache-2.0
// How fast kernels use an addressable tier in place: all threads of OpenMP's team read or write it, one
// follows pointers through it. What a tier charges kernels for is part of the time. One at a time.
#pragma once

#include "terrace/tier.hpp"

namespace terrace {

/// One pass over the first `area` bytes, which it overwrites. pre: an addressable tier of at least that many
BytesPerSecond measure_write(Tier& tier, Bytes area);
/// pre: written before, so that there are pages to read
BytesPerSecond measure_read(Tier& tier, Bytes area);

/// Returns how long a read takes whose address the processor cannot guess. What the tier declares counts,
/// where it declares something, and not what is measured. Overwrites `area`.
Seconds measure_latency(Tier& tier, Bytes area);

}  // namespace terrace
