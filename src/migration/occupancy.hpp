// How many bytes of a tier are planned to be in use during each kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "optim/range_maximum.hpp"

namespace terrace {

/// Ranges are of kernels first..last, both included, and are cut off at the last kernel.
class PlannedOccupancy {
 public:
  explicit PlannedOccupancy(std::uint32_t kernels) : kernels_(std::max(kernels, 1U)), bytes_(kernels_) {}
  /// Nothing happens where first > last. Negative amounts take away.
  void add(std::uint32_t first, std::uint32_t last, std::int64_t bytes) {
    bytes_.add(first, end_after(last), bytes);
  }
  /// The most in use during one of these kernels; 0 where first > last.
  std::int64_t most(std::uint32_t first, std::uint32_t last) const {
    return bytes_.most(first, end_after(last));
  }

 private:
  std::uint32_t end_after(std::uint32_t last) const { return std::min(last, kernels_ - 1) + 1; }

  std::uint32_t kernels_;
  optim::RangeMaximum bytes_;
};

}  // namespace terrace
