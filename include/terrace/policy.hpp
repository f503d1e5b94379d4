// A Policy decides from hints where objects live. It acts only through Regions and never touches bytes.
//
// The manager calls a policy with its lock held, so a policy needs none of its own, but see regions.hpp for
// the functions that release it. Every hint may be ignored: hints change speed, never results. Most policies
// derive from RecencyPolicy (recency_policy.hpp), which leaves only place() to be written.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "terrace/regions.hpp"
#include "terrace/tier.hpp"

namespace terrace {

class Policy {
 public:
  virtual ~Policy() = default;

  /// Finds a region for a new object, evicting others if need be.
  virtual Result<Region> place(Regions& regions, Bytes size) = 0;
  /// Moves the object to an addressable tier, because a pin needs it and its primary is in a tier that is
  /// not.
  virtual Result<void> fetch(Regions& regions, ObjectId object, Access access) = 0;

  // Hints (003 Table II). will_use means that the object is read and perhaps written.
  virtual void will_use(Regions& regions, ObjectId object) { will_write(regions, object); }
  virtual void will_read(Regions&, ObjectId) {}
  virtual void will_write(Regions&, ObjectId) {}
  virtual void archive(Regions&, ObjectId) {}
  virtual void retire(Regions& regions, ObjectId object) { regions.retire(object); }
  virtual void step_begin(Regions&) {}
  virtual void step_end(Regions&) {}
  virtual void layer_end(Regions&) {}

  // Notifications of what has happened.
  virtual void created(Regions&, ObjectId) {}
  virtual void touched(Regions&, ObjectId, Access) {}  ///< the object was pinned
  virtual void moved(Regions&, ObjectId) {}            ///< another region became its primary
  /// A background copy to that region ended; stale() tells whether it succeeded.
  virtual void copied(Regions&, ObjectId, RegionId) {}
  virtual void forgotten(ObjectId) {}  ///< the object was retired or destroyed; its id is no longer valid
};

/// Creates a policy by name; the error lists the known names.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name);
std::vector<std::string_view> policy_names();

}  // namespace terrace
