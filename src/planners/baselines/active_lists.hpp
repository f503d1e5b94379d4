// SPDX-License-Identifier: Apache-2.0
// The lists of the improved active list (000 section 6): active and inactive tensors, of fast and of slower
// memory, each in the order of arrival. They decide which tensors change tiers; ActiveListStep moves them.
//
//   marked     the tensor was used since the lists last looked at it; a use while marked makes it active
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

class ActiveLists {
 public:
  explicit ActiveLists(std::size_t tensors) : pages_(tensors) {}

  void used(TensorId tensor);
  /// Asks `bring` to copy the active tensors of slower memory to fast memory, in order, until it returns
  /// false; only inactive tensors make way for them. Then the oldest active tensors become inactive.
  void layer_end(const std::function<bool(TensorId)>& bring);
  /// Returns which of the tensors that may leave fast memory leaves next: inactive ones before active ones,
  /// and of these unmarked ones first.
  std::optional<TensorId> victim(const std::function<bool(TensorId)>& may_leave);
  /// The tensor is in fast memory now, or in a slower tier.
  void moved(TensorId tensor, bool fast) { enqueue(tensor, fast, pages_[tensor.index].active); }
  void forgotten(TensorId tensor);

 private:
  struct Page {
    bool listed = false, fast = false, active = false, marked = false;
    std::uint64_t arrival = 0;
  };
  using Entry = std::pair<std::uint64_t, std::uint32_t>;  ///< arrival, tensor

  std::set<Entry>& list(bool fast, bool active) { return lists_[(fast ? 2 : 0) + (active ? 1 : 0)]; }
  void dequeue(TensorId tensor);
  void enqueue(TensorId tensor, bool fast, bool active);
  void age();

  std::vector<Page> pages_;  ///< by tensor
  std::array<std::set<Entry>, 4> lists_;
  std::uint64_t arrivals_ = 0;
  bool spare_active_ = false;  ///< only inactive tensors may be victims
};

}  // namespace terrace
