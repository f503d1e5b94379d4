#include "migration/occupancy.hpp"

#include <algorithm>

namespace terrace {

PlannedOccupancy::PlannedOccupancy(std::uint32_t kernels)
    : kernels_(std::max(kernels, 1U)), most_(4 * std::size_t{kernels_}), whole_(4 * std::size_t{kernels_}) {}

void PlannedOccupancy::add(std::uint32_t first, std::uint32_t last, std::int64_t bytes) {
  last = std::min(last, kernels_ - 1);
  if (first <= last) add(1, 0, kernels_, first, last + 1, bytes);
}

std::int64_t PlannedOccupancy::most(std::uint32_t first, std::uint32_t last) const {
  last = std::min(last, kernels_ - 1);
  return first <= last ? most(1, 0, kernels_, first, last + 1) : 0;
}

// Half-open ranges from here on.
void PlannedOccupancy::add(std::size_t node, std::uint32_t begin, std::uint32_t end, std::uint32_t first,
                           std::uint32_t last, std::int64_t bytes) {
  if (last <= begin || end <= first) return;
  if (first <= begin && end <= last) {
    most_[node] += bytes;
    whole_[node] += bytes;
    return;
  }
  const std::uint32_t middle = begin + (end - begin) / 2;
  add(2 * node, begin, middle, first, last, bytes);
  add(2 * node + 1, middle, end, first, last, bytes);
  most_[node] = whole_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
}

std::int64_t PlannedOccupancy::most(std::size_t node, std::uint32_t begin, std::uint32_t end,
                                    std::uint32_t first, std::uint32_t last) const {
  if (first <= begin && end <= last) return most_[node];
  const std::uint32_t middle = begin + (end - begin) / 2;
  if (last <= middle) return whole_[node] + most(2 * node, begin, middle, first, last);
  if (first >= middle) return whole_[node] + most(2 * node + 1, middle, end, first, last);
  return whole_[node] +
         std::max(most(2 * node, begin, middle, first, last), most(2 * node + 1, middle, end, first, last));
}

}  // namespace terrace
