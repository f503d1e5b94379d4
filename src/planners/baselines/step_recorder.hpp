// SPDX-License-Identifier: Apache-2.0
// Writes down as a plan what a manager does to the regions of one step's tensors.
//
// Every region an object gains or loses is an `alloc` or a `free` at the offset of the manager's own heap,
// every copy a `copy` that is waited for at once. Left out are copies of what holds nothing yet: a manager
// may carry undefined bytes, a plan may not.
//
//   start region   the one region in which a tensor that outlives steps, or is given, lies when the step
//   begins astray         a tensor that must end in its start region and has lost it
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "migration/plan_writer.hpp"
#include "terrace/region_observer.hpp"

namespace terrace {

class StepRecorder final : public RegionObserver {
 public:
  /// `tiers`: the machine's tier for each of the manager's.
  StepRecorder(const PlanRequest& request, std::vector<TierId> tiers, std::string planner);

  /// The next new object is this tensor.
  void creating(TensorId tensor) { creating_ = tensor; }
  void gained(ObjectId object, TierId tier, std::uint64_t offset) override;
  void lost(ObjectId object, TierId tier) override;
  void copying(ObjectId object, TierId from, TierId to) override;
  void slid(ObjectId object, TierId tier, std::uint64_t offset) override;

  // A tensor without bytes is no object; its regions are in the fastest tier.
  void make_empty(TensorId tensor) { gain(tensor, {0}, 0); }
  void end_empty(TensorId tensor) { lose(tensor, {0}); }

  /// What there is now is what the step begins with. pre: one region for each tensor
  void begin();
  /// `tiers`: of the machine, one for each operand.
  void run(KernelId kernel, std::vector<TierId> tiers);
  TierId start_tier(TensorId tensor) const { return start_[tensor.index]->tier; }
  std::vector<TensorId> astray() const;
  /// Brings tensors to their start regions, leaves each result in one place where it can be read, and what is
  /// given where it is filled. Fails where no room is left for a result. pre: nothing is astray, all else has
  /// ended
  Result<void> end();
  /// pre: end() was fine
  Draft finish() &&;

  Bytes undefined() const { return undefined_; }  ///< left out: copies of what holds nothing
  // What end() copied.
  Bytes brought() const { return brought_; }  ///< to start regions
  Bytes cleared() const { return cleared_; }  ///< out of the way of what is given

 private:
  struct RegionState {
    bool exists = false;
    bool current = false;  ///< it holds what the tensor holds
    std::uint64_t offset = 0;
  };
  struct Name {
    ObjectId object;
    TensorId tensor;
  };
  /// A result in a tier where nobody can read it.
  struct Away {
    TensorId result;
    TierId tier;
  };
  TensorId tensor_of(ObjectId object) const { return names_[object.index].tensor; }
  RegionState& at(TensorId tensor, TierId tier) { return regions_[tensor.index * tier_count() + tier.index]; }
  const RegionState& at(TensorId tensor, TierId tier) const {
    return regions_[tensor.index * tier_count() + tier.index];
  }
  std::uint32_t tier_count() const { return static_cast<std::uint32_t>(request_.machine.tiers.size()); }
  std::uint32_t tensor_count() const { return static_cast<std::uint32_t>(start_.size()); }
  Bytes size(TensorId tensor, TierId tier) const;
  bool ends_at_start(TensorId tensor) const;
  bool is_start_region(TensorId tensor, TierId tier) const;
  void gain(TensorId tensor, TierId tier, std::uint64_t offset);
  void lose(TensorId tensor, TierId tier);
  void copy(TensorId tensor, TierId from, TierId to);
  void return_to_start(TensorId tensor);
  std::optional<TierId> at_hand(TensorId tensor) const;
  void leave_only_what_is_needed(TensorId tensor);
  bool is_in_the_way(TensorId result, TierId tier) const;
  std::optional<std::uint64_t> hole(TierId tier, Bytes size) const;
  bool carry(TensorId tensor, TierId from, TierId to);
  Result<void> clear_start_regions();
  bool send_away(TensorId result, TierId from, std::vector<Away>& away);
  bool make_readable(const Away& away);

  const PlanRequest& request_;
  const std::vector<TierId> tiers_;
  Plan plan_;
  std::vector<RegionState> regions_;         ///< by tensor and tier
  std::vector<std::optional<Alloc>> start_;  ///< by tensor: its start region
  std::vector<bool> result_;                 ///< by tensor
  std::vector<Name> names_;                  ///< by index of the object
  TensorId creating_;
  std::uint32_t tickets_ = 0;
  Bytes undefined_, brought_, cleared_;
};

}  // namespace terrace
