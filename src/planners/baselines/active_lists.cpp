// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/active_lists.hpp"

namespace terrace {

void ActiveLists::used(TensorId tensor) {
  Page& page = pages_[tensor.index];
  if (page.marked && !page.active) {
    enqueue(tensor, page.fast, true);
    page.marked = false;
  } else {
    page.marked = true;
  }
}

void ActiveLists::layer_end(const std::function<bool(TensorId)>& bring) {
  spare_active_ = true;
  const std::set<Entry> hot = list(false, true);
  for (const auto& [arrival, tensor] : hot) {
    if (!bring({tensor})) break;
  }
  spare_active_ = false;
  age();
}

std::optional<TensorId> ActiveLists::victim(const std::function<bool(TensorId)>& may_leave) {
  for (const bool active : {false, true}) {
    if (active && spare_active_) break;
    for (const bool marked : {false, true}) {
      for (const auto& [arrival, tensor] : list(true, active)) {
        if (pages_[tensor].marked == marked && may_leave({tensor})) return TensorId{tensor};
      }
    }
  }
  return std::nullopt;
}

void ActiveLists::forgotten(TensorId tensor) {
  dequeue(tensor);
  pages_[tensor.index] = {};
}

void ActiveLists::dequeue(TensorId tensor) {
  const Page& page = pages_[tensor.index];
  if (page.listed) list(page.fast, page.active).erase({page.arrival, tensor.index});
}

void ActiveLists::enqueue(TensorId tensor, bool fast, bool active) {
  dequeue(tensor);
  Page& page = pages_[tensor.index];
  page = {true, fast, active, page.marked, ++arrivals_};
  list(fast, active).insert({page.arrival, tensor.index});
}

/// Makes the oldest active tensors that were not used since they were last looked at inactive, until at most
/// half of the tensors of each memory are active.
void ActiveLists::age() {
  for (const bool fast : {true, false}) {
    for (std::size_t left = list(fast, true).size(); left > 0; --left) {
      if (list(fast, true).size() <= list(fast, false).size()) break;
      const TensorId oldest{list(fast, true).begin()->second};
      Page& page = pages_[oldest.index];
      enqueue(oldest, fast, page.marked);
      page.marked = false;
    }
  }
}

}  // namespace terrace
