// SPDX-License-Identifier: Apache-2.0
#include "plan/packing_search.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/random.hpp"

namespace terrace {
namespace {

// Climbs from layout to layout, never to a larger one, until that leads nowhere; then starts again from a
// disturbed copy of the best. A step takes a box out of a pile that reaches the top and places it earlier,
// before a box that it is live with.
class Search {
 public:
  Search(std::span<const Box> boxes, Layout layout, std::uint64_t bound, std::uint64_t looks)
      : boxes_(boxes), bound_(bound), most_looks_(looks), layout_(std::move(layout)), best_(layout_) {}

  Layout run() {
    constexpr int kClimbs = 20;
    for (int i = 0; i < kClimbs && !finished(); ++i) {
      if (i > 0) disturb();
      climb();
      if (layout_.total < best_.total) best_ = layout_;
    }
    return std::move(best_);
  }

 private:
  using Position = std::ptrdiff_t;  ///< of a box in order_

  std::uint64_t end(std::uint32_t box) const { return layout_.offsets[box] + boxes_[box].size; }

  bool finished() const { return layout_.total <= bound_ || looks_ + shelf_.looks() >= most_looks_; }

  void climb() {
    settle();
    const std::uint64_t patience = 50 + 10 * boxes_.size();
    for (std::uint64_t idle = 0; idle < patience && !finished(); ++idle) {
      const std::uint64_t before = layout_.total;
      step();
      if (layout_.total < before) idle = 0;
    }
  }

  // Moves some boxes of the best layout's order anywhere, whatever that does to its total.
  void disturb() {
    layout_ = best_;
    settle();
    for (std::size_t moves = 2 + boxes_.size() / 20; moves > 0; --moves)
      std::swap(order_[random_.below(order_.size())], order_[random_.below(order_.size())]);
    layout_.total = ~std::uint64_t{0};
    arrange(boxes_, order_, 0, Fit::lowest, layout_, shelf_);
  }

  // By offset: then what comes before a box in the order is what may be below it.
  void settle() {
    order_.resize(boxes_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return layout_.offsets[a] < layout_.offsets[b];
    });
  }

  void step() {
    const Position from = pick_culprit();
    const std::uint32_t moved = order_[from];
    const auto to = pick(from, [&](std::uint32_t box) { return boxes_[box].meets(boxes_[moved]); });
    if (!to) return;
    Order next = order_;
    std::rotate(next.begin() + *to, next.begin() + from, next.begin() + from + 1);
    if (arrange(boxes_, next, static_cast<std::size_t>(*to), Fit::lowest, layout_, shelf_)) settle();
  }

  // A box that reaches the top, or one some way down in the pile that it stands on.
  Position pick_culprit() {
    Position culprit = *pick(static_cast<Position>(order_.size()),
                             [&](std::uint32_t box) { return end(box) == layout_.total; });
    while (random_.below(2) == 0) {
      const std::uint32_t upper = order_[culprit];
      const auto lower = pick(culprit, [&](std::uint32_t box) {
        return end(box) == layout_.offsets[upper] && boxes_[box].meets(boxes_[upper]);
      });
      if (!lower) break;
      culprit = *lower;
    }
    return culprit;
  }

  // One of the places before `limit` whose boxes are wanted, each as likely.
  template <class Wanted>
  std::optional<Position> pick(Position limit, const Wanted& wanted) {
    looks_ += static_cast<std::uint64_t>(limit);
    std::optional<Position> picked;
    std::uint64_t found = 0;
    for (Position place = 0; place < limit; ++place)
      if (wanted(order_[place]) && random_.below(++found) == 0) picked = place;
    return picked;
  }

  const std::span<const Box> boxes_;
  const std::uint64_t bound_;
  const std::uint64_t most_looks_;
  Layout layout_;
  Layout best_;
  Order order_;
  Shelf shelf_;
  std::uint64_t looks_ = 0;  // beside the shelf's
  SplitMix random_{1};       // always the same numbers: packing is a pure function
};

}  // namespace

bool arrange(std::span<const Box> boxes, const Order& order, std::size_t settled, Fit fit, Layout& layout,
             Shelf& shelf) {
  shelf.clear();
  std::vector<std::uint64_t> offsets = layout.offsets;
  for (std::size_t i = 0; i < settled; ++i) shelf.put(boxes[order[i]], offsets[order[i]]);
  for (std::size_t i = settled; i < order.size(); ++i) {
    offsets[order[i]] = shelf.place(boxes[order[i]], fit);
    if (shelf.top() > layout.total) return false;
  }
  layout = {std::move(offsets), shelf.top()};
  return true;
}

Layout improved(std::span<const Box> boxes, Layout layout, std::uint64_t bound, std::uint64_t looks) {
  if (layout.total == bound) return layout;
  return Search(boxes, std::move(layout), bound, looks).run();
}

}  // namespace terrace
