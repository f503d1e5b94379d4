// State that a kernel changes and, when it is recomputed, has to read as it was before: the running
// statistics of a batch normalisation. It stays in fast memory side by side; a snapshot of it is written to
// slower memory before the first run and brought back before the second, many in one transfer.
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

  /// Whether the machine has a tier that can hold snapshots at all.
  static bool possible(const Machine& machine);

 private:
  /// What is written before one kernel and brought back before another.
  struct Group {
    std::uint32_t begin, save;  ///< kernels before which the snapshot begins to be written, and is done
    std::uint32_t restore,
        until;  ///< kernels after which it begins to come back, and before which it is done
    std::vector<std::uint32_t> places = {};  ///< in tensors_, ascending
  };
  class Writing;
  void add(const StateRead& one, std::uint32_t place, std::uint32_t changed);

  std::vector<TensorId> tensors_;
  std::vector<Group> groups_;  ///< in the order of `save`
};

}  // namespace terrace::best
