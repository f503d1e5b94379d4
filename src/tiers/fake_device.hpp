// SPDX-License-Identifier: Apache-2.0
// FakeDevice: a device without a GPU, made to bring out every mistake in the use of one.
//
// A host that dereferences its addresses dies at once (fake_memory.hpp). What is issued waits in its queue
// until an adversary runs it: in any order that queues, events and flags allow, or as late as they allow. A
// copy's destination is filled with rubbish when the copy is issued, or when the last flag that it is behind
// is raised, and its source is hashed then and again when the copy runs. Two operations on the same bytes
// that nothing puts in order (fake_order.hpp), host memory that is not pinned, a changed source, memory freed
// in use: each is noted as a violation, whether or not bytes came out wrong this time. Operations run on the
// thread that waits for them. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "terrace/tier.hpp"
#include "tiers/fake_memory.hpp"
#include "tiers/fake_order.hpp"

namespace terrace {

class FakeDevice final : public Device {
 public:
  enum class Schedule {
    eager,   ///< everything runs as soon as it may, the way an idle GPU does
    random,  ///< a seeded generator picks among what may run, whenever anybody calls
    lazy,    ///< nothing runs before somebody waits for it, and nothing that is not needed then
  };
  using Range = FakeRange;
  enum class Flags { offered, refused };

  explicit FakeDevice(Schedule schedule, std::uint64_t seed = 1, Flags flags = Flags::offered);
  ~FakeDevice() override;
  FakeDevice(const FakeDevice&) = delete;

  const std::string& name() const noexcept override { return name_; }
  std::unique_ptr<DeviceAllocation> allocate(Bytes bytes) override;
  std::unique_ptr<DeviceQueue> make_queue() override;
  std::unique_ptr<DeviceEvent> make_event() override;
  std::unique_ptr<DeviceFlag> make_flag() override;
  std::unique_ptr<DevicePin> pin(std::span<std::byte> memory) override;
  bool reaches(std::span<const std::byte> memory) override;

  /// Issues a kernel, which says what it reads and writes and finds its operands by bytes_at().
  void launch(DeviceQueue& queue, FakeRanges reads, FakeRanges writes, std::function<void()> work);
  /// The bytes behind an address that the device reaches: for kernels, and for a test that looks.
  std::byte* bytes_at(DeviceAddress address);

  /// The nth call from now (1 = the next) that issues, records, waits, pins or allocates throws; the device
  /// works on.
  void fail_call(std::uint64_t nth);
  /// The nth operation to run from now fails, and the device is lost.
  void fail_run(std::uint64_t nth);
  /// The nth call from now that records an event or makes a queue wait does nothing: a mistake in the order
  /// of queues, planted.
  void forget_call(std::uint64_t nth);
  /// A lost device works again; what it had not yet run is gone.
  void heal();

  std::uint64_t copies() const;       ///< issued so far
  std::uint64_t calls() const;        ///< those that fail_call() counts
  std::uint64_t order_calls() const;  ///< those that forget_call() counts
  std::vector<std::string> violations() const;

 private:
  using Mark = FakeOrder::Mark;
  using FlagWait = FakeOrder::FlagWait;
  struct Operation {
    std::string what;
    FakeRanges reads, writes;
    std::function<void()> work;
    std::optional<Mark> after = {};  // it runs when these are over
    std::optional<FlagWait> after_flag = {};
    std::optional<FlagWait> raises = {};
    // What the device knows of it:
    std::uint64_t number = 0;  // in the order of issue, over all queues
    FakeOrder::Past past = {};
    bool prepared = false;
    std::vector<std::uint64_t> hashes = {};  // of `reads`; empty where earlier operations still write there
  };
  struct Lane {
    std::deque<Operation> waiting;
    std::uint64_t issued = 0, run = 0;
  };
  struct Bundle;
  class Queue;
  class Event;
  class Flag;
  class Pin;
  class Allocation;

  // All of these hold the lock.
  void count_call(const char* what);
  bool forgets_order();
  void require_alive() const;
  void issue(std::size_t queue, Operation operation);
  void prepare(Operation& operation);
  void prepare_behind_flags();
  bool used_before(const Operation* operation, const Range& range, bool only_written) const;
  bool in_use(const Range& range) const { return used_before(nullptr, range, false); }
  bool over(const Mark& mark) const { return lanes_[mark.queue].run >= mark.index; }
  bool may_run(const Lane& lane) const;
  void run_next(Lane& lane);
  bool run_any();
  void run_all();
  void run_until(const Mark& mark);
  bool run_towards(const Mark& mark);
  std::optional<Mark> raiser_of(FlagWait flag) const;

  const std::string name_;
  const Schedule schedule_;
  const Flags flags_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable_any raised_;
  std::mt19937_64 random_;
  FakeMemory memory_;
  FakeOrder order_;
  std::vector<Lane> lanes_;  // by queue, those of queues that are gone too
  std::uint64_t copies_ = 0, calls_ = 0, order_calls_ = 0, operations_ = 0;
  std::uint64_t failing_call_ = 0, failing_run_ = 0, forgotten_call_ = 0;  // countdowns; 0 = none
  bool lost_ = false;
};

/// A tier on that device. pre: spec.kind == fake and spec.on_device
Result<std::unique_ptr<Tier>> open_fake_device_tier(const TierSpec& spec, std::shared_ptr<FakeDevice> device);
/// Memory pinned for that device, as a tier.
std::unique_ptr<Tier> make_pinned_for(std::shared_ptr<Device> device, Bytes capacity);

}  // namespace terrace
