// SPDX-License-Identifier: Apache-2.0
// One episode in an Environment: asks for one decision after the other and keeps the room that they take.
//
// A plain value that borrows its environment. One thread at a time.
#pragma once

#include <vector>

#include "planners/deeptm/environment.hpp"

namespace terrace::deeptm {

struct Outcome {
  /// An earlier decision that is changed, because its tensor made room.
  struct Left {
    std::size_t position;
    TierId tier;
  };
  double reward = 0;
  TierId tier;           ///< where the tensor went
  bool no_room = false;  ///< which is not where it was sent
  std::vector<Left> left;
};

class Rollout {
 public:
  /// `capacity`: of fast memory, no more than the budget.
  Rollout(const Environment& environment, Bytes capacity);

  bool done() const { return at_ == environment_.decisions().size(); }
  /// pre: !done()
  const Decision& decision() const { return environment_.decisions()[at_]; }
  /// Whether fast memory has room for what is decided now, or idle tensors can make some. pre: !done()
  bool has_room() const { return has_room_; }
  /// The slower tier that the tensor has, or would get by itself. pre: !done()
  TierId slower_tier() const { return *units().all[decision().unit].backing_tier; }

  /// What an agent sees: the tensor's place, its heat, the room left in each tier (004 section IV-C), and
  /// beside them what the paper leaves to the heat: which moment is decided about, how far the step is, and
  /// what a use in slower memory and a transfer cost in comparison. pre: !done()
  void observe(std::vector<float>& state) const;
  static std::size_t observed(std::size_t tiers) { return tiers + 6; }

  /// The seconds that an action adds to the step at once; for what leaves, its store and its next use.
  /// pre: !done()
  Seconds cost(TierId tier) const;

  /// pre: !done()
  Outcome act(TierId tier);

  /// The place of the decision among all of the environment. pre: !done()
  std::size_t position() const { return at_; }

  /// pre: done()
  Result<Draft> write(PackingEffort effort) const;

 private:
  using Unit = migration::Unit;
  using When = Decision::When;
  struct Span {
    std::uint32_t first, last;  ///< kernels, both included; empty where first > last
  };

  const migration::Units& units() const { return own_.all.empty() ? environment_.units() : own_; }
  const migration::Visit& visit(std::uint32_t index) const { return environment_.visits().all[index]; }
  const Unit& unit() const { return units().all[decision().unit]; }
  std::uint32_t end() const { return environment_.view().kernels(); }
  std::uint32_t kernel() const { return decision().when == When::start ? 0 : visit(decision().visit).first; }

  void reserve_what_has_no_choice();
  void reserve_visits(std::uint32_t unit, std::int64_t bytes);
  bool is_pinned(std::uint32_t unit) const;
  bool is_open() const;
  void close();
  void skip_closed();
  std::vector<Span> spans() const;
  bool fits(const std::vector<Span>& spans) const;
  Span idle_span(std::uint32_t visit) const;
  std::vector<std::uint32_t> coldest_first();
  void find_room();
  bool is_read_now(std::uint32_t visit) const;
  void leave(std::uint32_t visit, Outcome& outcome);
  void use_in_place(std::uint32_t visit);
  void go_fast();
  void go_slow(TierId tier);
  void choose_home(std::uint32_t unit, TierId tier);
  void end_use();
  Seconds fetch_time() const;
  Seconds store_time(std::uint32_t visit) const;
  Seconds return_time(std::uint32_t visit) const;
  Seconds room_time() const;
  Seconds waited(Seconds transfer) const;
  double reward(TierId tier) const;

  const Environment& environment_;
  std::int64_t capacity_;
  migration::Units own_;     ///< where tensors have a choice of slower tiers; else empty
  std::vector<bool> homed_;  ///< by unit: its slower tier was chosen
  std::vector<Bytes> room_;  ///< by tier: what is left of the slower ones
  migration::Schedule schedule_;
  std::vector<Seconds> slow_;        ///< by kernel: what its operands in slower tiers take
  PlannedOccupancy taken_;           ///< of fast memory
  std::vector<std::uint32_t> idle_;  ///< visits after which a unit stays in fast memory, past ones among them
  std::vector<std::uint32_t> leaving_;  ///< those of them that would make room for what is decided now
  bool has_room_ = false;
  std::vector<bool> fast_;    ///< by unit: it is in fast memory now
  std::vector<bool> stored_;  ///< by unit: what it holds is in its slower tier
  std::size_t at_ = 0;
};

}  // namespace terrace::deeptm
