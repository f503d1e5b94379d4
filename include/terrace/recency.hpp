// Recency keeps the order in which objects were last used, for each tier, with archived objects apart.
// Policies use it to choose victims.
//
// Every operation but coldest() takes constant time. It is not thread-safe: a policy uses it under the
// manager's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "terrace/regions.hpp"

namespace terrace {

class Recency {
 public:
  void add(ObjectId object, TierId tier);  ///< adds it as the most recently used object of that tier
  void touch(ObjectId object);             ///< marks it as used now and no longer archived
  void archive(ObjectId object);  ///< makes it a victim before all others, except those archived earlier
  void move(ObjectId object, TierId tier);  ///< its primary is there now; an archived object stays archived
  void remove(ObjectId object);
  bool archived(ObjectId object) const;

  /// Returns the first object of a tier that `wanted(object)` accepts: archived ones first, then the least
  /// recently used.
  template <class Wanted>
  std::optional<ObjectId> coldest(TierId tier, Wanted wanted) const {
    for (const std::uint32_t list : {list_of(tier, true), list_of(tier, false)}) {
      if (list >= lists_.size()) continue;
      for (std::uint32_t at = lists_[list].next; at != kNone; at = nodes_[at].next) {
        if (wanted(nodes_[at].object)) return nodes_[at].object;
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Node {
    ObjectId object;
    std::uint32_t previous = kNone, next = kNone;
    std::uint32_t list = kNone;
  };
  struct List {
    std::uint32_t next = kNone, last = kNone;
  };

  static constexpr std::uint32_t list_of(TierId tier, bool archived) {
    return tier.index * 2 + (archived ? 0 : 1);
  }
  Node& node(ObjectId object);
  void append(ObjectId object, std::uint32_t list);
  void unhook(Node& node);

  std::vector<Node> nodes_;  // by object index
  std::vector<List> lists_;  // by list_of()
};

}  // namespace terrace
