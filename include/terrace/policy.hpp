// Policy: decides where objects live, from hints. It acts only through Regions and never touches bytes.
//
// The manager calls a policy with its lock held, so a policy needs none of its own, but see regions.hpp for
// the verbs that release it. Every hint may be ignored: hints change speed, never results. Most policies want
// RecencyPolicy as their base (recency_policy.hpp), which leaves only place() to be written.
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

  /// Finds room for a new object, making it if need be.
  virtual Result<Region> place(Regions& regions, Bytes size) = 0;
  /// Somebody must use the object and its primary is not addressable: bring it to a tier that is.
  virtual Result<void> fetch(Regions& regions, ObjectId object, Access access) = 0;

  // Hints (003 Table II). will_use means: read, and perhaps written.
  virtual void will_use(Regions& regions, ObjectId object) { will_write(regions, object); }
  virtual void will_read(Regions&, ObjectId) {}
  virtual void will_write(Regions&, ObjectId) {}
  virtual void archive(Regions&, ObjectId) {}
  virtual void retire(Regions& regions, ObjectId object) { regions.retire(object); }
  virtual void step_begin(Regions&) {}
  virtual void step_end(Regions&) {}
  virtual void layer_end(Regions&) {}

  // What happened.
  virtual void created(Regions&, ObjectId) {}
  virtual void touched(Regions&, ObjectId, Access) {}  ///< pinned
  virtual void moved(Regions&, ObjectId) {}            ///< it has another primary
  virtual void copied(Regions&, ObjectId, RegionId) {
  }                                    ///< a background copy to that region ended; see stale()
  virtual void forgotten(ObjectId) {}  ///< retired or destroyed; the id is dead
};

/// Opens a policy by name; the error lists the names.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name);
std::vector<std::string_view> policy_names();

}  // namespace terrace
