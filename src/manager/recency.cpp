// SPDX-License-Identifier: Apache-2.0
#include "terrace/recency.hpp"

#include "base/check.hpp"

namespace terrace {

void Recency::add(ObjectId object, TierId tier) {
  if (object.index >= nodes_.size()) nodes_.resize(object.index + 1);
  check(nodes_[object.index].list == kNone, "an object was added twice");
  nodes_[object.index].object = object;
  append(object, list_of(tier, false));
}

void Recency::touch(ObjectId object) {
  const std::uint32_t list = node(object).list | 1;
  unhook(node(object));
  append(object, list);
}

void Recency::archive(ObjectId object) {
  const std::uint32_t list = node(object).list & ~std::uint32_t{1};
  unhook(node(object));
  append(object, list);
}

void Recency::move(ObjectId object, TierId tier) {
  const bool was_archived = archived(object);
  unhook(node(object));
  append(object, list_of(tier, was_archived));
}

void Recency::remove(ObjectId object) { unhook(node(object)); }

bool Recency::archived(ObjectId object) const { return (nodes_.at(object.index).list & 1) == 0; }

Recency::Node& Recency::node(ObjectId object) {
  check(object.index < nodes_.size() && nodes_[object.index].object == object &&
            nodes_[object.index].list != kNone,
        "an object unknown to the order of use");
  return nodes_[object.index];
}

void Recency::append(ObjectId object, std::uint32_t list) {
  if (list >= lists_.size()) lists_.resize(list + 1);
  Node& added = nodes_[object.index];
  added.list = list;
  added.next = kNone;
  added.previous = lists_[list].last;
  (added.previous == kNone ? lists_[list].next : nodes_[added.previous].next) = object.index;
  lists_[list].last = object.index;
}

void Recency::unhook(Node& gone) {
  List& list = lists_[gone.list];
  (gone.previous == kNone ? list.next : nodes_[gone.previous].next) = gone.next;
  (gone.next == kNone ? list.last : nodes_[gone.next].previous) = gone.previous;
  gone.list = kNone;
}

}  // namespace terrace
