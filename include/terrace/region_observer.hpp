// RegionObserver: is told what happens to the regions of a manager's objects, in the order in which it
// happens. Statistics say how much a policy moved; this says what, from where and when, so that its decisions
// can be recorded as a plan, drawn or checked.
//
// Called with the manager's lock held: it must not call the manager.
#pragma once

#include <cstdint>

#include "terrace/regions.hpp"

namespace terrace {

class RegionObserver {
 public:
  virtual ~RegionObserver() = default;

  /// The object has a region there from now on, a new one its first.
  virtual void gained(ObjectId, TierId, std::uint64_t /*offset*/) {}
  virtual void lost(ObjectId, TierId) {}
  /// A copy of the object's contents begins.
  virtual void copying(ObjectId, TierId /*from*/, TierId /*to*/) {}
  /// Compaction moved the object's region to that offset.
  virtual void slid(ObjectId, TierId, std::uint64_t /*offset*/) {}
};

}  // namespace terrace
