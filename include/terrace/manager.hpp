// A Manager owns objects and regions on an ordered set of tiers, fastest first, and is the only thing that
// moves bytes. It never decides where an object lives: a policy does, from the hints given here.
//
//   auto manager = Manager({"dram:1GiB", "file:/data/spill:8GiB"}, "LMP");
//
// A pin keeps an object where it is: many may read at once, but a writer is alone. A hint is advice about
// future use. All functions are thread-safe. Objects, pins and arrays must end before their manager.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/heap.hpp"
#include "terrace/mover.hpp"
#include "terrace/policy.hpp"
#include "terrace/region_observer.hpp"

namespace terrace {

/// The object stays at data() until the pin is destroyed.
class Pin {
 public:
  Pin(Pin&& other) noexcept;
  Pin& operator=(Pin&&) = delete;
  ~Pin();

  std::byte* data() const noexcept { return data_; }  ///< pre: do not write through a pin for reading
  Bytes size() const noexcept { return size_; }
  TierId tier() const noexcept { return tier_; }

 private:
  friend class Manager;
  friend struct ManagerCore;
  Pin() = default;
  ManagerCore* core_ = nullptr;
  ObjectId object_;
  Access access_ = Access::read;
  std::byte* data_ = nullptr;
  Bytes size_;
  TierId tier_;
};

struct ManagerStatistics {
  std::vector<HeapStatistics> tiers;               ///< indexed by TierId
  std::vector<std::vector<LinkStatistics>> links;  ///< [from][to]
  std::uint64_t objects = 0;
  std::uint64_t copies = 0;      ///< requested by the policy, failed ones included
  std::uint64_t evictions = 0;   ///< an object's primary went to a slower tier
  std::uint64_t promotions = 0;  ///< an object's primary went to a faster tier
  std::uint64_t failed_copies = 0;
  std::string last_failure;  ///< the message of the latest failed copy, including those that a hint started
  Seconds waited{0};         ///< time callers spent waiting for copies
  Bytes buffers;             ///< memory held beyond the tiers
};

class Manager {
 public:
  /// Takes ownership of opened tiers and a policy. In a rehearsal (mover.hpp) tiers need no memory and pins
  /// have no data.
  Manager(std::vector<std::unique_ptr<Tier>> tiers, std::unique_ptr<Policy> policy,
          MoverOptions options = {});
  /// Does the same from specs and a policy's name; throws ResultError with a sentence that says what is
  /// wrong.
  Manager(std::initializer_list<std::string_view> specs, std::string_view policy, MoverOptions options = {});
  ~Manager();

  /// Creates an object with undefined contents. Fails with invalid_argument (no bytes), too_large (for every
  /// tier) or tier_full.
  Result<ObjectId> create(Bytes size);
  /// Ends an object. Its regions are freed as soon as no pin or copy uses them.
  void destroy(ObjectId object);
  /// Fetches the object to an addressable tier and keeps it there. Waits for conflicting readers, writers and
  /// copies. Fails with retired, or with the reason why no addressable tier can be cleared. Throws
  /// EnvironmentError when moving fails; the object keeps its last written contents then.
  Result<Pin> pin(ObjectId object, Access access);

  // Hints never fail: an error in one is counted in the statistics, and raised by the pin that needs the
  // object.
  void will_use(ObjectId object);
  void will_read(ObjectId object);
  void will_write(ObjectId object);
  void archive(ObjectId object);  ///< the object will not be used for some time
  /// The object will never be used again, and later pins are refused. Its contents no longer move, except
  /// under the modes none and L, which keep dead objects until a collection as in the paper.
  void retire(ObjectId object);
  void step_begin();
  void step_end();
  void layer_end();

  std::uint32_t tiers() const;
  Tier& tier(TierId id);
  /// Returns the tier of the object's primary region. It is a snapshot: without a pin the object may move at
  /// any moment.
  TierId where(ObjectId object) const;
  ManagerStatistics statistics() const;
  /// Reports all changes of regions to the observer from now on; nullptr ends that. The observer is borrowed.
  void observe(RegionObserver* observer);
  /// Waits until every copy in progress is complete.
  void settle();
  /// Cross-checks heaps, regions and objects against each other; the error names the first contradiction.
  Result<void> validate() const;

 private:
  friend class Pin;
  void hint(ObjectId object, void (Policy::*method)(Regions&, ObjectId));
  void hint(void (Policy::*method)(Regions&));
  std::unique_ptr<ManagerCore> core_;
};

}  // namespace terrace
