// How many bytes of a tier are planned to be in use during each kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "terrace/bytes.hpp"

namespace terrace {

/// Adds to a range of kernels and finds the most in a range, each in logarithmic time.
class PlannedOccupancy {
 public:
  explicit PlannedOccupancy(std::uint32_t kernels);
  /// Kernels first..last, both included; nothing where first > last. Negative amounts take away.
  void add(std::uint32_t first, std::uint32_t last, std::int64_t bytes);
  /// 0 where first > last.
  std::int64_t most(std::uint32_t first, std::uint32_t last) const;

 private:
  void add(std::size_t node, std::uint32_t begin, std::uint32_t end, std::uint32_t first, std::uint32_t last,
           std::int64_t bytes);
  std::int64_t most(std::size_t node, std::uint32_t begin, std::uint32_t end, std::uint32_t first,
                    std::uint32_t last) const;

  std::uint32_t kernels_;
  std::vector<std::int64_t> most_, whole_;  ///< a segment tree: the most below a node, and what all below got
};

}  // namespace terrace
