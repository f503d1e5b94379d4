// SPDX-License-Identifier: Apache-2.0
// State that a kernel changes and, when it is recomputed, has to read as it was before: the running
// statistics of a batch normalisation. It stays in fast memory side by side; a snapshot of it is written to
// slower memory before the first run and brought back before every other, many in one transfer.
#pragma once

#include <cstdint>
#include <vector>

#include "migration/plan_writer.hpp"

namespace terrace::best {

/// A persistent tensor and two runs of a kernel that change it, one after the other. Nothing else uses it in
/// between.
struct StateRead {
  TensorId tensor;
  std::uint32_t first, second;  ///< kernels
  std::uint32_t written = 0;    ///< one past the last kernel before `first` that changes it; 0: none does
  bool is_saved = false;        ///< `first` is not the first run, before which the snapshot was written
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
  /// What is written before one kernel and brought back before another, or only brought back.
  struct Group {
    std::uint32_t begin, save;  ///< kernels before which the snapshot begins to be written, and is done
    std::uint32_t restore,
        until;  ///< kernels after which it begins to come back, and before which it is done
    std::vector<std::uint32_t> places = {};  ///< in tensors_, ascending
    std::vector<std::uint32_t> last = {};    ///< those of them that nobody brings back after that
  };
  class Writing;
  /// Two runs of a kernel that change what has this place, and whether the second is the last.
  struct Runs {
    std::uint32_t first, second, place;
    bool last;
  };
  void add(const Runs& one, std::uint32_t changed);
  void add_returns(std::vector<Runs> later);

  std::vector<TensorId> tensors_;
  std::vector<Group> groups_;   ///< in the order of `save`
  std::vector<Group> returns_;  ///< for third runs and later ones: nothing is written
};

}  // namespace terrace::best
