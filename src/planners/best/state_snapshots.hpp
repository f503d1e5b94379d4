// Values that a kernel changes and, when it runs again, reads once more as they were: the running statistics
// of a batch normalisation. They stay in fast memory side by side; what they were is written to slower memory
// before the first run and brought back before the second, many in one transfer.
#pragma once

#include <cstdint>
#include <vector>

#include "migration/plan_writer.hpp"

namespace terrace::best {

/// A persistent tensor and the two runs that change it. Nothing else uses it in between.
struct StateRead {
  TensorId tensor;
  std::uint32_t first, second;  ///< kernels
  std::uint32_t written = 0;    ///< one past the last kernel before `first` that changes it; 0: none does
};

class StateSnapshots {
 public:
  StateSnapshots() = default;
  explicit StateSnapshots(std::vector<StateRead> all);

  /// What has to be in fast memory from step to step, side by side in this order.
  const std::vector<TensorId>& tensors() const { return tensors_; }
  /// Fails where no slower tier has room for them.
  Result<void> add_to(Draft& draft, const PlanRequest& request) const;

  /// Whether the machine has a place for them at all.
  static bool possible(const Machine& machine);

 private:
  /// What is written before one kernel and brought back before another.
  struct Group {
    std::uint32_t begin, save;     ///< kernels before which they begin to be written, and are
    std::uint32_t restore, until;  ///< kernels after which they come back, and before which they did
    std::vector<std::uint32_t> places = {};  ///< in tensors_, ascending
  };
  class Writing;
  void add(const StateRead& one, std::uint32_t place, std::uint32_t changed);

  std::vector<TensorId> tensors_;
  std::vector<Group> groups_;  ///< in the order of `save`
};

}  // namespace terrace::best
