// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/model/flow.hpp"

#include <initializer_list>

#include "base/check.hpp"
#include "planners/autotm/model/flow_wires.hpp"

namespace terrace::autotm {
namespace {

/// The moments between one point of the flow graph and the next.
struct Hop {
  std::uint32_t first = 1, last = 0;  ///< moments between two uses
  std::uint32_t left = kNone;         ///< the use right before it, if it begins there
  std::uint32_t use = kNone;          ///< the use that it leads to, if it does
};

/// Memory that is taken of a level from one moment to another, both included.
struct StayInPool {
  std::uint32_t level = 0, first = 1, last = 0;
};

class FlowBuilder {
 public:
  FlowBuilder(TensorLife life, Formulation formulation, std::uint32_t moments)
      : life_(std::move(life)),
        asynchronous_(formulation == Formulation::asynchronous),
        last_(static_cast<std::uint32_t>(life_.levels.size()) - 1),
        end_(moments - 1) {
    check(!life_.levels.empty() && life_.levels.size() <= kMostTiers, "an instance has up to three tiers");
    graph_.tensor = life_.tensor;
    graph_.size = life_.size;
    graph_.uses = life_.uses;
  }

  FlowGraph fixed() {
    for (std::uint32_t level = 0; level <= last_; ++level) {
      bool may = true;
      for (std::uint32_t use = 0; use < life_.uses.size(); ++use) may = may && may_use(use, level);
      if (may) chain(level);
    }
    return finish();
  }

  /// A tensor that outlives the step lies between steps in fast memory, in the slowest tier, or in one
  /// between (its backing tier). A backing tier takes memory all the time, so nothing is gained by moving to
  /// a tier slower than it.
  FlowGraph moving() {
    const std::uint32_t slowest = last_;
    if (life_.origin == Origin::kept && may_use(0, 0)) chain(0);
    for (std::uint32_t backing = 1; backing < slowest && life_.origin != Origin::made; ++backing) {
      if (!may_use(0, backing)) continue;
      last_ = backing;
      Point at;
      use_first(at, take(0, {backing, 0, end_}), backing);
      live(at);
    }
    last_ = slowest;
    live(begin());
    return finish();
  }

 private:
  using Origin = TensorLife::Origin;

  /// Returns whether the level's bytes are counted.
  bool is_pool(std::uint32_t level) const { return level == 0 || level < last_; }
  bool may_use(std::uint32_t use, std::uint32_t level) const {
    return life_.levels[level].fits && (life_.levels[level].usable || life_.anywhere[use]);
  }
  /// A tensor whose backing tier is a slower one has to be there when the step ends.
  bool may_arrive(const Hop& hop, std::uint32_t level) const {
    if (hop.use == kNone) return life_.levels[level].fits;
    const bool is_back = life_.origin != Origin::kept || moment(hop.use) != end_ || level == last_;
    return is_back && may_use(hop.use, level);
  }
  std::uint32_t moment(std::uint32_t use) const { return life_.uses[use].moment; }
  bool writes(const Hop& hop) const { return hop.use != kNone && life_.uses[hop.use].writes; }
  bool is_kernel(std::uint32_t at) const { return at > 0 && at < end_; }
  bool may_move_beside(const Hop& hop) const {
    return asynchronous_ && hop.use == kNone && hop.first == hop.last;
  }
  /// Returns the last moment of a hop, including the use it leads to.
  std::uint32_t until(const Hop& hop) const { return hop.use == kNone ? hop.last : moment(hop.use); }

  std::uint32_t take(std::uint32_t from, const StayInPool& stay) {
    return wires_.take(from, life_.levels[stay.level].tier, stay.first, stay.last);
  }

  /// Adds an edge to a state of the next point, which takes memory for these stays where they are in pools.
  Edge& go(std::uint32_t from, Point& to, State state, std::uint32_t use,
           std::initializer_list<StayInPool> stays) {
    StayInPool own;
    for (const StayInPool& stay : stays) {
      if (!is_pool(stay.level) || stay.first > stay.last) continue;
      if (own.first <= own.last) from = take(from, own);
      own = stay;
    }
    Edge& edge = wires_.connect(from, to[state]);
    edge.pool = life_.levels[own.level].tier;
    edge.first = own.first;
    edge.last = own.last;
    edge.use = use;
    edge.tier = life_.levels[state.level].tier;
    return edge;
  }
  /// Returns the memory of the slower copy, if there is one.
  static StayInPool copy_stays(State state, std::uint32_t first, std::uint32_t last) {
    return state.has_copy() ? StayInPool{state.copy, first, last} : StayInPool{};
  }

  void set_move(Edge& edge, Move move, std::uint32_t moment, std::uint32_t source) const {
    edge.move = move;
    edge.moment = moment;
    edge.source = life_.levels[source].tier;
  }
  void set_copy(Edge& edge, Move move, std::uint32_t moment, std::uint32_t source, std::uint32_t target,
                bool beside) const {
    set_move(edge, move, moment, source);
    edge.target = life_.levels[target].tier;
    edge.time = *life_.levels[source].to[target];
    edge.beside = beside;
  }

  /// Adds the path that stays in one tier for life, as in fig. 6a; it is also that of a tensor kept in fast
  /// memory from step to step.
  void chain(std::uint32_t level) {
    const bool has_backing = level > 0 && is_pool(level) && life_.origin != Origin::made;
    std::uint32_t at = has_backing ? take(0, {level, 0, end_}) : 0;
    if (level == 0 && life_.origin == Origin::given) at = returning();
    std::uint32_t from = life_.uses.empty() ? 0 : moment(0);
    for (std::uint32_t use = 0; use < life_.uses.size(); ++use) {
      wires_.next_point();
      Point to;
      go(at, to, {level, level}, use, {has_backing ? StayInPool{} : StayInPool{level, from, moment(use)}});
      from = moment(use) + 1;
      at = to[{level, level}];
    }
    wires_.end(at);
  }

  /// An input's region in fast memory has to exist again at the step's end.
  std::uint32_t returning() { return take(0, {0, end_, end_}); }

  void use_first(Point& at, std::uint32_t from, std::uint32_t level) {
    go(from, at, {level, level}, 0, {{level, moment(0), moment(0)}});
  }

  Point begin() {
    Point at;
    for (std::uint32_t level = 0; level <= last_; ++level) {
      if (!may_use(0, level)) continue;
      if (life_.origin == Origin::made || (level == last_ && level > 0)) use_first(at, 0, level);
      if (life_.origin == Origin::given && level == 0) use_first(at, returning(), level);
    }
    return at;
  }

  void live(Point at) {
    for (std::uint32_t use = 0; use + 1 < life_.uses.size(); ++use) at = gap(at, use);
    for (const State state : kStates) {
      if (at[state] != kNone) wires_.end(at[state]);
    }
  }

  Point gap(const Point& from, std::uint32_t use) {
    if (!life_.uses[use + 1].reads) return renew(from, use);
    const std::uint32_t first = moment(use) + 1, last = moment(use + 1) - 1;
    if (first > last) return hop(from, {first, last, use, use + 1});
    Point at = from;
    std::uint32_t left = use, done = first;
    const auto cross = [&](std::uint32_t until) {
      at = hop(at, {done, until, left, kNone});
      left = kNone;
      done = until + 1;
    };
    if (asynchronous_) {
      const bool whole = last - first + 1 <= 2 * kReach;
      while (done <= last && (whole || done < first + kReach)) cross(done);
      if (!whole) cross(last - kReach);
    }
    while (done <= last) cross(asynchronous_ ? done : last);
    return hop(at, {done, last, kNone, use + 1});
  }

  /// Crosses a gap after which the tensor is overwritten: nothing is kept, and its next use creates it in any
  /// tier.
  Point renew(const Point& from, std::uint32_t use) {
    wires_.next_point();
    Point to;
    const Hop hop{1, 0, use, use + 1};
    for (const State state : kStates) {
      for (std::uint32_t level = 0; level <= last_ && from[state] != kNone; ++level) {
        if (!may_use(use + 1, level)) continue;
        Edge& edge = go(from[state], to, {level, level}, use + 1, {{level, until(hop), until(hop)}});
        set_move(edge, Move::renew, moment(use), state.level);
      }
    }
    return to;
  }

  Point hop(const Point& from, const Hop& hop) {
    wires_.next_point();
    Point to;
    for (const State state : kStates) {
      if (from[state] != kNone) stay(from[state], state, to, hop);
    }
    for (const State state : kStates) {
      if (from[state] != kNone) leave(from[state], state, to, hop);
    }
    for (const State state : kStates) {
      if (from[state] != kNone) come_back(from[state], state, to, hop);
    }
    return to;
  }

  /// Returns the state after a hop: a write makes the slower copy stale.
  State after(State state, const Hop& hop) const {
    return {state.level, writes(hop) ? state.level : state.copy};
  }

  void stay(std::uint32_t node, State state, Point& to, const Hop& hop) {
    if (!may_arrive(hop, state.level)) return;
    const StayInPool own{state.level, hop.first, until(hop)};
    go(node, to, after(state, hop), hop.use, {copy_stays(state, hop.first, until(hop)), own});
    // A copy in a pool takes memory there, so it may also be dropped.
    if (!state.has_copy() || !is_pool(state.copy) || hop.left == kNone) return;
    Edge& edge = go(node, to, {state.level, state.level}, hop.use, {own});
    set_move(edge, Move::drop, moment(hop.left), state.copy);
  }

  void leave(std::uint32_t node, State state, Point& to, const Hop& hop) {
    const std::uint32_t slowest = state.has_copy() ? state.copy : last_;
    for (std::uint32_t level = state.level + 1; level <= slowest; ++level) {
      if (!may_arrive(hop, level)) continue;
      const StayInPool own{level, hop.first, until(hop)};
      if (state.has_copy() && level == state.copy) {
        if (hop.left == kNone) continue;
        Edge& edge = go(node, to, {level, level}, hop.use, {own});
        set_move(edge, Move::drop, moment(hop.left), state.level);
      } else if (life_.levels[state.level].to[level]) {
        write_out(node, state, level, to, hop);
      }
    }
  }

  void write_out(std::uint32_t node, State state, std::uint32_t level, Point& to, const Hop& hop) {
    const State left{level, state.has_copy() ? state.copy : level};
    const StayInPool copy = copy_stays(left, hop.first, until(hop));
    const auto out = [&](std::uint32_t at, bool beside, std::uint32_t first, StayInPool source) {
      Edge& edge =
          go(node, to, after(left, hop), hop.use, {copy, StayInPool{level, first, until(hop)}, source});
      set_copy(edge, Move::out, at, state.level, level, beside);
    };
    if (hop.left != kNone) {
      const TensorUse& use = life_.uses[hop.left];
      out(use.moment, false, hop.first, {});
      if (asynchronous_ && !use.writes && is_kernel(use.moment)) out(use.moment, true, use.moment, {});
    }
    if (may_move_beside(hop)) out(hop.first, true, hop.first, {state.level, hop.first, hop.first});
  }

  /// A tensor that moves between two pools is counted in both at the moment of the move. So there is room for
  /// all, even where other tensors move the opposite way at the same moment.
  void come_back(std::uint32_t node, State state, Point& to, const Hop& hop) {
    const bool beside = may_move_beside(hop);
    if (hop.use == kNone && !beside) return;
    const auto in = [&](std::uint32_t level, std::uint32_t copy) {
      Edge& edge =
          go(node, to, after({level, copy}, hop), hop.use,
             {copy_stays(state, hop.first, until(hop)), StayInPool{state.level, hop.first, until(hop)},
              StayInPool{level, until(hop), until(hop)}});
      set_copy(edge, Move::in, until(hop), state.level, level, beside);
      edge.frees = copy != state.level;
    };
    for (std::uint32_t level = 0; level < state.level; ++level) {
      if (!life_.levels[state.level].to[level] || !may_arrive(hop, level)) continue;
      in(level, state.level);
      if (state.has_copy() && !writes(hop)) in(level, state.copy);
    }
  }

  FlowGraph finish() {
    wires_.finish(graph_);
    return std::move(graph_);
  }

  TensorLife life_;
  bool asynchronous_;
  std::uint32_t last_;  ///< the slowest level: no pool
  std::uint32_t end_;   ///< the moment of the step's end
  FlowGraph graph_;
  FlowWires wires_;
};

}  // namespace

FlowGraph flow_graph(TensorLife life, Formulation formulation, std::uint32_t moments) {
  FlowBuilder builder(std::move(life), formulation, moments);
  return formulation == Formulation::fixed ? builder.fixed() : builder.moving();
}

}  // namespace terrace::autotm
