// Manager: owns objects and regions on an ordered set of tiers, fastest first, and is the only thing that
// moves bytes. It never decides: a policy does, from the hints given here.
//
//   auto manager = Manager({"dram:1GiB", "file:/data/spill:8GiB"}, "LMP");
//
// A pin keeps an object where it is: many may read at once, a writer is alone. A hint is advice about the
// future. All functions are thread-safe. Objects, pins and arrays must end before their manager.
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

/// In scope means held: the object stays at data() until the pin is dropped.
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
  std::vector<HeapStatistics> tiers;               ///< by TierId
  std::vector<std::vector<LinkStatistics>> links;  ///< [from][to]
  std::uint64_t objects = 0;
  std::uint64_t copies = 0;      ///< asked for by the policy, failed ones included
  std::uint64_t evictions = 0;   ///< an object's primary went to a slower tier
  std::uint64_t promotions = 0;  ///< an object's primary went to a faster tier
  std::uint64_t failed_copies = 0;
  std::string last_failure;  ///< the latest failed copy's message, hints' included
  Seconds waited{0};         ///< time callers spent waiting for copies
  Bytes buffers;             ///< memory held beyond the tiers
};

class Manager {
 public:
  /// In a rehearsal (mover.hpp) tiers need no memory and pins have no data.
  Manager(std::vector<std::unique_ptr<Tier>> tiers, std::unique_ptr<Policy> policy,
          MoverOptions options = {});
  /// The same from specs and a policy's name; throws ResultError with the sentence of what is wrong.
  Manager(std::initializer_list<std::string_view> specs, std::string_view policy, MoverOptions options = {});
  ~Manager();

  /// A new object, contents undefined. Fails with invalid_argument (no bytes), too_large (for every tier) or
  /// tier_full.
  Result<ObjectId> create(Bytes size);
  /// Ends an object. Its regions are free as soon as pins and copies let go.
  void destroy(ObjectId object);
  /// Brings the object to where it can be used and keeps it there. Waits for readers, writers and copies in
  /// the way. Fails with retired, or with what stands in the way when no addressable tier can be cleared.
  /// Throws EnvironmentError when moving fails; the object then still has its last written contents.
  Result<Pin> pin(ObjectId object, Access access);

  // Hints. They never fail: what goes wrong in one is counted in the statistics, and raised by the pin that
  // needs it.
  void will_use(ObjectId object);
  void will_read(ObjectId object);
  void will_write(ObjectId object);
  void archive(ObjectId object);  ///< not used for some time
  /// Never used again: later pins are refused. Its contents move no more, except under the modes none and L,
  /// which keep the dead until a collection as the paper has it.
  void retire(ObjectId object);
  void step_begin();
  void step_end();
  void layer_end();

  std::uint32_t tiers() const;
  Tier& tier(TierId id);
  /// Where the object's contents are now. A snapshot: without a pin it may move at once.
  TierId where(ObjectId object) const;
  ManagerStatistics statistics() const;
  /// Tells it of everything from here on; nullptr ends that. Borrowed.
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
