// A RegionObserver is notified of every change to the regions of a manager's objects, in order. Statistics
// say how much a policy moved; an observer learns what moved, from where and when, so that the policy's
// decisions can be recorded as a plan, drawn or checked.
//
// The manager calls it with its lock held, so it must not call the manager.
#pragma once

#include <cstdint>

#include "terrace/regions.hpp"

namespace terrace {

class RegionObserver {
 public:
  virtual ~RegionObserver() = default;

  /// The object has a region there from now on; for a new object this is its first.
  virtual void gained(ObjectId, TierId, std::uint64_t /*offset*/) {}
  virtual void lost(ObjectId, TierId) {}
  /// A copy of the object's contents begins.
  virtual void copying(ObjectId, TierId /*from*/, TierId /*to*/) {}
  /// Compaction moved the object's region to that offset.
  virtual void slid(ObjectId, TierId, std::uint64_t /*offset*/) {}
};

}  // namespace terrace
