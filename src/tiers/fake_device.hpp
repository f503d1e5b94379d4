// SPDX-License-Identifier: Apache-2.0
// FakeDevice: a device without a GPU, made to bring out every mistake in the use of one.
//
// A host that dereferences its addresses dies at once: they are mapped without any access, and a second
// mapping of the same memory, which only the device knows, holds the bytes. What is issued waits in its queue
// until an adversary runs it: in any order that queues and events allow, or as late as they allow. A copy's
// destination is filled with rubbish when the copy is issued, and its source is hashed then and again when
// the copy runs. Two operations on the same bytes that no queue and no event puts in order, host memory that
// is not pinned, a changed source, memory freed in use: each is noted as a violation, whether or not bytes
// came out wrong this time. Thread-safe.
#pragma once

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

namespace terrace {

class FakeDevice final : public Device {
 public:
  enum class Schedule {
    eager,   ///< everything runs as soon as it may, the way an idle GPU does
    random,  ///< a seeded generator picks among what may run, whenever anybody calls
    lazy,    ///< nothing runs before somebody waits for it, and nothing that is not needed then
  };
  /// A stretch of memory, the host's or the device's, that an operation uses.
  struct Range {
    std::uint64_t begin = 0, end = 0;
  };

  explicit FakeDevice(Schedule schedule, std::uint64_t seed = 1);
  ~FakeDevice() override;
  FakeDevice(const FakeDevice&) = delete;

  const std::string& name() const noexcept override { return name_; }
  std::unique_ptr<DeviceAllocation> allocate(Bytes bytes) override;
  std::unique_ptr<DeviceQueue> make_queue() override;
  std::unique_ptr<DeviceEvent> make_event() override;
  std::unique_ptr<DevicePin> pin(std::span<std::byte> memory) override;
  bool reaches(std::span<const std::byte> memory) override;

  /// Issues a kernel, which says what it reads and writes and finds its operands by bytes_at().
  void launch(DeviceQueue& queue, std::vector<Range> reads, std::vector<Range> writes,
              std::function<void()> work);
  /// The bytes behind an address: for kernels, and for a test that looks. pre: inside an allocation
  std::byte* bytes_at(DeviceAddress address);

  /// The nth call from now (1 = the next) that issues, records, waits or allocates throws; the device works
  /// on.
  void fail_call(std::uint64_t nth);
  /// The nth operation to run from now fails, and the device is lost.
  void fail_run(std::uint64_t nth);
  /// A lost device works again; what it had not yet run is gone.
  void heal();

  std::uint64_t copies() const;  ///< issued so far
  std::vector<std::string> violations() const;

 private:
  using Clock = std::vector<std::uint64_t>;  // by queue: how many of its operations are known to be over
  struct Mark {
    std::size_t queue = 0;
    std::uint64_t index = 0;  // over when so many operations of the queue have run
  };
  struct Operation {
    std::string what;
    std::vector<Range> reads, writes;
    std::function<void()> work;
    std::optional<Mark> after;          // runs when this is over
    std::vector<std::uint64_t> hashes;  // of `reads`, where nothing that waits to run writes there
    bool hashed = false;
  };
  struct Issued {  // what may still be under way as far as the host knows
    Mark mark;
    std::string what;
    std::vector<Range> reads, writes;
  };
  struct Lane {
    std::deque<Operation> waiting;
    std::uint64_t issued = 0, run = 0;
    Clock clock;
  };
  class Queue;
  class Event;
  class Pin;
  class Allocation;

  // All of these hold the lock.
  void count_call(const char* what);
  void require_alive() const;
  void issue(std::size_t queue, Operation operation);
  void note_races(std::size_t queue, const Operation& operation);
  void require_pinned(const Operation& operation);
  void hash_and_poison(Operation& operation);
  bool used_by_waiting(const Range& range, bool only_written) const;
  bool pinned(const Range& range) const;
  std::byte* host_view(std::uint64_t address);
  bool on_device(std::uint64_t address) const;
  bool over(const Mark& mark) const { return lanes_[mark.queue].run >= mark.index; }
  bool may_run(const Lane& lane) const;
  void run_next(Lane& lane);
  bool run_any();
  void run_all();
  void run_until(const Mark& mark);
  void run_for(const Mark& mark);
  void seen_by_host(const Clock& clock);

  const std::string name_;
  const Schedule schedule_;

  mutable std::mutex mutex_;  // guards all below
  std::mt19937_64 random_;
  std::vector<Allocation*> allocations_;
  std::vector<Range> pins_;
  std::vector<Lane> lanes_;  // by queue, those of queues that are gone too
  std::vector<Issued> issued_;
  Clock host_;  // what the host has seen to be over
  std::uint64_t copies_ = 0;
  std::uint64_t failing_call_ = 0, failing_run_ = 0;  // countdowns; 0 = none
  bool lost_ = false;
  std::vector<std::string> violations_;
};

/// A tier on that device. pre: spec.kind == fake and spec.on_device
Result<std::unique_ptr<Tier>> open_fake_device_tier(const TierSpec& spec, std::shared_ptr<FakeDevice> device);
/// Memory pinned for that device, as a tier.
std::unique_ptr<Tier> make_pinned_for(std::shared_ptr<Device> device, Bytes capacity);

}  // namespace terrace
