// SPDX-License-Identifier: Apache-2.0
// What the service's sampler remembers (service_sample.cpp). Only the evicting thread changes it, with the
// service's lock held.
#pragma once

#include <cstdint>
#include <vector>

#include "pages/keeper/allowance.hpp"
#include "pages/keeper/scan_window.hpp"
#include "pages/keeper/stretches.hpp"
#include "pages/service.hpp"

namespace terrace::pages {

struct Service::Sampling {
  Sampling(const ProfilingOptions& wanted, std::size_t most_samples)
      : options(wanted),
        most(most_samples),
        allowance(wanted),
        window(wanted.interval_seconds / wanted.scans),
        stretches(wanted) {
    stretches.set_limit(std::min(allowance.samples_of_interval(), most));
  }

  ProfilingOptions options;
  std::size_t most;  ///< samples at a time: their frames are fast memory
  Allowance allowance;
  ScanWindow window;
  Stretches stretches;
  std::vector<Address> chunks;         ///< those that the stretches tile
  std::vector<std::uint16_t> batches;  ///< that hold samples
  std::vector<PartId> lifted;          ///< samples that were taken out for this scan, in order
  std::vector<std::uint64_t> absent;   ///< pages of samples that were on a slower tier then, in order
  unsigned scans_done = 0;
  unsigned pages = 0, pages_here = 0;  ///< of the parts that this scan asks: all, and those in fast memory
  bool armed = false;                  ///< samples of a scan are out
  std::uint64_t next_ns = 0;           ///< when to go on
  std::uint64_t next_scan_ns = 0;      ///< when the scan after this one begins
  std::uint64_t arming_ns = 0;         ///< what it took to take this scan's samples out
};

}  // namespace terrace::pages
