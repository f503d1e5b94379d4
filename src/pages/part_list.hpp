// SPDX-License-Identifier: Apache-2.0
// A PartList keeps parts in the order in which they were added, and gives up any of them at once. The links
// are in the table's records; a part is in at most one list.
#pragma once

#include "pages/part_table.hpp"

namespace terrace::pages {

class PartList {
 public:
  PartId first() const { return first_; }
  std::size_t size() const { return size_; }

  void append(PartTable& table, PartId id) {
    Part& part = table[id];
    part.previous = last_;
    part.next = kNoPart;
    part.listed = true;
    (last_ == kNoPart ? first_ : table[last_].next) = id;
    last_ = id;
    ++size_;
  }

  void remove(PartTable& table, PartId id) {
    Part& part = table[id];
    (part.previous == kNoPart ? first_ : table[part.previous].next) = part.next;
    (part.next == kNoPart ? last_ : table[part.next].previous) = part.previous;
    part.previous = part.next = kNoPart;
    part.listed = false;
    --size_;
  }

 private:
  PartId first_ = kNoPart, last_ = kNoPart;
  std::size_t size_ = 0;
};

}  // namespace terrace::pages
