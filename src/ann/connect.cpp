// SPDX-License-Identifier: Apache-2.0
#include "ann/connect.hpp"

#include <algorithm>
#include <limits>

namespace terrace::ann {
namespace {

class Connector {
 public:
  Connector(const LayerSize& size, std::vector<std::uint32_t>& links, const Rows& rows,
            const std::vector<std::uint32_t>& order)
      : size_(size), links_(links), rows_(rows), order_(order), reached_(size.nodes) {}

  std::uint64_t run() {
    reach_from(0);
    std::uint64_t added = 0;
    for (std::uint32_t node = 0; node < size_.nodes; ++node) {
      if (reached_[node]) continue;
      const std::uint32_t from = near_with_room(node);
      if (from == kNoLink) continue;
      *free_place(from) = node;
      ++added;
      reach_from(node);
    }
    return added;
  }

 private:
  std::span<std::uint32_t> links_of(std::uint32_t node) {
    return std::span(links_).subspan(std::size_t{node} * size_.links, size_.links);
  }
  std::uint32_t* free_place(std::uint32_t node) {
    const auto links = links_of(node);
    return links.back() == kNoLink ? &*std::find(links.begin(), links.end(), kNoLink) : nullptr;
  }

  void reach_from(std::uint32_t start) {
    reached_[start] = true;
    open_.assign(1, start);
    while (!open_.empty()) {
      const std::uint32_t node = open_.back();
      open_.pop_back();
      for (const std::uint32_t link : links_of(node)) {
        if (link == kNoLink) break;
        if (reached_[link]) continue;
        reached_[link] = true;
        open_.push_back(link);
      }
    }
  }

  /// The nearest of the reached nodes around it that have room for a link, else of a sample of all.
  std::uint32_t near_with_room(std::uint32_t node) {
    Best best;
    for (const std::uint32_t link : links_of(node)) {
      if (link == kNoLink) break;
      consider(node, link, best);
      for (const std::uint32_t further : links_of(link)) {
        if (further == kNoLink) break;
        consider(node, further, best);
      }
    }
    constexpr std::uint64_t kSample = 2000;
    const std::uint64_t stride = size_.nodes / kSample + 1;
    for (std::uint64_t first = 0; first < stride && best.node == kNoLink; ++first) {
      for (std::uint64_t at = first; at < size_.nodes; at += stride)
        consider(node, static_cast<std::uint32_t>(at), best);
    }
    return best.node;
  }

  struct Best {
    std::uint32_t node = kNoLink;
    float distance = std::numeric_limits<float>::infinity();
  };
  void consider(std::uint32_t node, std::uint32_t other, Best& best) {
    if (!reached_[other] || free_place(other) == nullptr) return;
    const float here = rows_.distance(rows_.row(order_[node]), rows_.row(order_[other]), rows_.dimension);
    if (here < best.distance) best = {other, here};
  }

  const LayerSize size_;
  std::vector<std::uint32_t>& links_;
  const Rows& rows_;
  const std::vector<std::uint32_t>& order_;
  std::vector<bool> reached_;
  std::vector<std::uint32_t> open_;
};

}  // namespace

std::uint64_t connect_all(const LayerSize& size, std::vector<std::uint32_t>& links, const Rows& rows,
                          const std::vector<std::uint32_t>& order) {
  return size.nodes == 0 ? 0 : Connector(size, links, rows, order).run();
}

}  // namespace terrace::ann
