// SPDX-License-Identifier: Apache-2.0
// Puts a schedule into time and writes it as a plan.
//
// Walks the kernels with an estimated clock. At the beginning of an interval the fetches for the next one are
// asked for; each starts as soon as there is room that no kernel before its visit needs. A unit leaves after
// the last use of its visit, and may be written to its backing tier before that, while kernels still read it.
// Kernels wait for what they need when they need it; what would be late may be used in slow memory instead.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "migration/migration_rules.hpp"
#include "migration/plan_writer.hpp"
#include "migration/schedule.hpp"
#include "migration/walk.hpp"

namespace terrace::migration {

/// How migrations for an interval stood when it began (002 section 4.4.4).
enum class Case { done, no_room, no_time };

/// When what leaves is written to its backing tier: then, or as early as lets it leave in time, if kernels
/// only read it from there on. The latter is for units of one tensor.
enum class Stores { when_leaving, ahead };

/// Where short-lived tensors lie in fast memory: anywhere, or side by side in one space (000 section 4.3).
enum class Reserve { anywhere, contiguous };

class MigrationWriter {
 public:
  /// Borrows all but the schedule. `ahead`: for how many intervals to come fetches are asked for.
  MigrationWriter(const StepView& view, const Units& units, const Visits& visits, Schedule schedule,
                  Bytes capacity, const IntervalEnd& end, FetchOrder order, std::uint32_t ahead = 1,
                  Stores stores = Stores::when_leaving, Reserve reserve = Reserve::anywhere);

  Result<Draft> write(PackingEffort effort);
  /// Returns how each interval began; those for which nothing migrates are done.
  const std::vector<Case>& cases() const { return cases_; }
  /// Returns how long the kernels of each interval wait for units that are on their way.
  const std::vector<Seconds>& waited() const { return waited_; }

 private:
  /// A unit that is to be written to its backing tier, beside this kernel at the latest.
  struct Store {
    std::uint32_t unit, last;
  };
  struct State {
    std::uint32_t visit = kNever;  ///< begun last
    std::uint32_t regions = 0;     ///< in fast memory
    bool leaving = false;
    std::vector<std::uint32_t> tickets;  ///< of transfers to wait for before it is used
    Seconds ready{0};                    ///< when they are done
    std::vector<std::uint32_t> stores;   ///< tickets of a transfer to its backing tier while it is used
    Seconds stored{0};                   ///< when that is done
  };

  Result<void> begin();
  Result<void> run(std::uint32_t kernel);
  void begin_interval(std::uint32_t interval);
  void judge(std::uint32_t interval);
  void make_room(std::uint32_t kernel);
  void begin_visits(std::uint32_t kernel);
  void fetch_ahead(std::uint32_t kernel);
  void fetch(std::uint32_t visit, std::uint32_t kernel);
  bool is_awaited(std::uint32_t visit) const;
  bool is_better_left(std::uint32_t visit, Seconds arrival, Seconds needed) const;
  void leave_in_slow(std::uint32_t visit);
  void plan_stores();
  void store_ahead(std::uint32_t kernel);
  bool is_read_later(TensorId tensor, std::uint32_t kernel) const;
  bool is_storable(std::uint32_t unit) const;
  bool remains(std::uint32_t visit) const;
  void store(std::uint32_t unit, TierId to);
  Result<void> compute(std::uint32_t kernel);
  Result<void> make_operands(std::uint32_t kernel);
  void after_use(const Use& use);
  Result<void> end_visits(std::uint32_t kernel);
  Result<void> leave(std::uint32_t unit, std::uint32_t next_kernel);
  void finish_leaving(std::size_t index, std::uint32_t next_kernel);
  bool keep(std::uint32_t unit, std::uint32_t kernel);
  void finish();

  Result<TierId> spill_tier(const Unit& unit);
  TierId tier_of(TensorId tensor) const;
  std::optional<TierId> slower_tier_of(const Unit& unit) const;
  std::uint32_t visit_at(std::uint32_t unit, std::uint32_t kernel) const;
  void begin_visit(std::uint32_t visit, std::uint32_t kernel);
  bool holds_needed(const Unit& unit) const;
  std::vector<std::uint32_t> copy_runs(const Unit& unit, TierId from, TierId to,
                                       const std::vector<bool>& wanted);
  Bytes missing(std::uint32_t kernel) const;
  void make_fast(TensorId tensor);
  void free_fast(TensorId tensor);
  void free_slow(TensorId tensor);
  std::int64_t size_of(std::uint32_t unit) const {
    return static_cast<std::int64_t>(units_.all[unit].size.count);
  }

  const StepView& view_;
  const Graph& graph_;
  const Machine& machine_;
  const Units& units_;
  const Visits& visits_;
  Schedule schedule_;
  const IntervalEnd& end_;
  FetchOrder order_;
  std::uint32_t ahead_;
  std::uint32_t asked_ = 0;  ///< intervals whose fetches were asked for
  PlanWriter writer_;
  std::vector<State> state_;           ///< by unit
  std::vector<bool> needed_, stored_;  ///< by tensor: what it holds is needed; its slower region is current
  std::vector<bool> in_backing_tier_;  ///< by unit: its slower regions are there from step to step
  std::deque<std::uint32_t> awaited_;  ///< visits whose units are to be fetched, in order
  std::vector<std::vector<Store>> stores_;  ///< by kernel: those that are to begin beside it
  std::deque<Store> due_;                   ///< those that begin as soon as links are free
  Walk walk_;                               ///< what departs is named by its unit, the first to end first
  std::vector<Case> cases_;
  std::vector<Seconds> waited_;
};

}  // namespace terrace::migration
