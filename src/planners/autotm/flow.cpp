#include "planners/autotm/flow.hpp"

#include <algorithm>

namespace terrace::autotm {
namespace {

constexpr TierId kFast{0};

/// The nodes of a place in time, by what the tensor's state is there; kNone: it is never in that state.
struct Point {
  std::uint32_t fast = kNone, both = kNone, slow = kNone;
};

/// The moments from one point to the next.
struct Hop {
  std::uint32_t first = 1, last = 0;  ///< between two uses
  std::uint32_t left = kNone;         ///< the use right before it, if it begins there
  std::uint32_t use = kNone;          ///< the use that it leads to, if it does
};

class FlowBuilder {
 public:
  FlowBuilder(TensorLife life, Formulation formulation, TierId slow, std::uint32_t moments)
      : life_(std::move(life)),
        asynchronous_(formulation == Formulation::asynchronous),
        slow_(slow),
        end_(moments - 1) {
    graph_.tensor = life_.tensor;
    graph_.size = life_.size;
    graph_.uses = life_.uses;
  }

  FlowGraph fixed() {
    if (life_.fits) chain(kFast);
    if (may_be_slow_always()) chain(slow_);
    return finish();
  }

  FlowGraph moving() {
    Point at = life_.origin == TensorLife::Origin::kept ? keep() : begin();
    for (std::uint32_t use = 0; use + 1 < life_.uses.size(); ++use) at = gap(at, use);
    for (const std::uint32_t node : {at.fast, at.both, at.slow}) final_.push_back(node);
    return finish();
  }

 private:
  using Origin = TensorLife::Origin;

  bool has_slow() const { return slow_ != kFast; }
  bool may_be_slow(std::uint32_t use) const { return has_slow() && life_.may_be_slow[use]; }
  bool may_be_slow_always() const {
    return has_slow() &&
           std::all_of(life_.may_be_slow.begin(), life_.may_be_slow.end(), [](bool may) { return may; });
  }
  std::uint32_t moment(std::uint32_t use) const { return life_.uses[use].moment; }

  Edge& connect(std::uint32_t from, std::uint32_t& to) {
    if (to == kNone) to = graph_.nodes++;
    Edge edge;
    edge.from = from;
    edge.to = to;
    return graph_.edges.emplace_back(edge);
  }

  Edge& enter(std::uint32_t from, std::uint32_t& to, std::uint32_t use, TierId tier) {
    Edge& edge = connect(from, to);
    edge.use = use;
    edge.tier = tier;
    if (tier == kFast) edge.first = edge.last = moment(use);
    return edge;
  }

  static void set_move(Edge& edge, Move move, std::uint32_t moment, Seconds time, bool beside = false) {
    edge.move = move;
    edge.moment = moment;
    edge.time = time;
    edge.beside = beside;
  }

  /// In one tier for life: the paths of fig. 6a, and of what is kept in fast memory.
  void chain(TierId tier) {
    std::uint32_t at = 0, from = life_.uses.empty() ? 0 : moment(0);
    if (tier == kFast && life_.origin == Origin::given) at = returning();
    for (std::uint32_t use = 0; use < life_.uses.size(); ++use) {
      std::uint32_t to = kNone;
      Edge& edge = enter(at, to, use, tier);
      if (tier == kFast) edge.first = from;
      from = moment(use) + 1;
      at = to;
    }
    final_.push_back(at);
  }

  /// The place of an input in fast memory is there again at the end.
  std::uint32_t returning() {
    std::uint32_t to = kNone;
    Edge& edge = connect(0, to);
    edge.first = edge.last = end_;
    return to;
  }

  Point keep() {
    if (life_.fits) chain(kFast);
    Point at;
    if (may_be_slow(0)) enter(0, at.slow, 0, slow_);
    return at;
  }

  Point begin() {
    Point at;
    if (life_.fits) {
      const std::uint32_t from = life_.origin == Origin::given ? returning() : 0;
      enter(from, at.fast, 0, kFast);
    }
    if (may_be_slow(0)) enter(0, at.slow, 0, slow_);
    return at;
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

  /// What the tensor holds is of no use: it is made anew wherever the next use wants it.
  Point renew(const Point& from, std::uint32_t use) {
    Point to;
    for (const std::uint32_t node : {from.fast, from.both, from.slow}) {
      if (node == kNone) continue;
      if (life_.fits) set_move(enter(node, to.fast, use + 1, kFast), Move::renew, moment(use), Seconds{0});
      if (may_be_slow(use + 1))
        set_move(enter(node, to.slow, use + 1, slow_), Move::renew, moment(use), Seconds{0});
    }
    return to;
  }

  Point hop(const Point& from, const Hop& hop) {
    Point to;
    stay(from, to, hop);
    leave(from, to, hop);
    come_back(from, to, hop);
    return to;
  }

  /// Whoever keeps a tensor in the slow tier from step to step finds it there.
  bool may_enter_fast(const Hop& hop) const {
    return hop.use == kNone || life_.origin != Origin::kept || moment(hop.use) != end_;
  }
  bool may_enter_slow(const Hop& hop) const { return hop.use == kNone ? has_slow() : may_be_slow(hop.use); }
  /// Writing makes the slow copy a stale one.
  static std::uint32_t& with_copy(Point& to, bool writes) { return writes ? to.fast : to.both; }
  bool writes(const Hop& hop) const { return hop.use != kNone && life_.uses[hop.use].writes; }
  bool is_kernel(std::uint32_t at) const { return at > 0 && at < end_; }
  bool may_move_beside(const Hop& hop) const {
    return asynchronous_ && hop.use == kNone && hop.first == hop.last;
  }

  Edge& arrive(std::uint32_t from, std::uint32_t& to, const Hop& hop, TierId tier) {
    return hop.use == kNone ? connect(from, to) : enter(from, to, hop.use, tier);
  }

  void stay(const Point& from, Point& to, const Hop& hop) {
    const std::uint32_t last = hop.use == kNone ? hop.last : moment(hop.use);
    const auto in_fast = [&](std::uint32_t node, std::uint32_t& target) {
      if (node == kNone || !may_enter_fast(hop)) return;
      Edge& edge = arrive(node, target, hop, kFast);
      edge.first = hop.first;
      edge.last = last;
    };
    in_fast(from.fast, to.fast);
    in_fast(from.both, with_copy(to, writes(hop)));
    if (from.slow != kNone && may_enter_slow(hop)) arrive(from.slow, to.slow, hop, slow_);
  }

  void leave(const Point& from, Point& to, const Hop& hop) {
    if (!may_enter_slow(hop)) return;
    const auto out = [&](std::uint32_t at, bool beside) -> Edge& {
      Edge& edge = arrive(from.fast, to.slow, hop, slow_);
      set_move(edge, Move::out, at, *life_.out, beside);
      return edge;
    };
    if (hop.left != kNone) {
      const TensorUse& use = life_.uses[hop.left];
      if (from.both != kNone)
        set_move(arrive(from.both, to.slow, hop, slow_), Move::drop, use.moment, Seconds{0});
      if (from.fast != kNone && life_.out) {
        out(use.moment, false);
        if (asynchronous_ && !use.writes && is_kernel(use.moment)) out(use.moment, true);
      }
    }
    if (from.fast != kNone && life_.out && may_move_beside(hop)) {
      Edge& edge = out(hop.first, true);
      edge.first = edge.last = hop.first;
    }
  }

  void come_back(const Point& from, Point& to, const Hop& hop) {
    if (from.slow == kNone || !life_.in || !life_.fits || !may_enter_fast(hop)) return;
    if (hop.use != kNone) {
      Edge& edge = enter(from.slow, with_copy(to, writes(hop)), hop.use, kFast);
      set_move(edge, Move::in, moment(hop.use), *life_.in);
    } else if (may_move_beside(hop)) {
      Edge& edge = connect(from.slow, to.both);
      set_move(edge, Move::in, hop.first, *life_.in, true);
      edge.first = edge.last = hop.first;
    }
  }

  /// Leaves out what leads nowhere.
  FlowGraph finish() {
    std::vector<bool> lives(graph_.nodes);
    for (const std::uint32_t node : final_) {
      if (node != kNone) lives[node] = true;
    }
    std::stable_sort(graph_.edges.begin(), graph_.edges.end(),
                     [](const Edge& a, const Edge& b) { return a.from < b.from; });
    for (auto edge = graph_.edges.rbegin(); edge != graph_.edges.rend(); ++edge) {
      if (lives[edge->to]) lives[edge->from] = true;
    }
    std::erase_if(graph_.edges, [&](const Edge& edge) { return !lives[edge.to]; });
    std::vector<std::uint32_t> number(graph_.nodes);
    graph_.nodes = 0;
    for (std::size_t i = 0; i < number.size(); ++i) {
      number[i] = graph_.nodes;
      if (lives[i]) ++graph_.nodes;
    }
    for (Edge& edge : graph_.edges) {
      edge.from = number[edge.from];
      edge.to = number[edge.to];
    }
    return std::move(graph_);
  }

  TensorLife life_;
  bool asynchronous_;
  TierId slow_;
  std::uint32_t end_;  ///< the moment of the step's end
  FlowGraph graph_;
  std::vector<std::uint32_t> final_;
};

}  // namespace

FlowGraph flow_graph(TensorLife life, Formulation formulation, TierId slow, std::uint32_t moments) {
  FlowBuilder builder(std::move(life), formulation, slow, moments);
  return formulation == Formulation::fixed ? builder.fixed() : builder.moving();
}

}  // namespace terrace::autotm
