// SPDX-License-Identifier: Apache-2.0
#include "tiers/fake_device.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/check.hpp"
#include "terrace/error.hpp"
#include "tiers/device_tier.hpp"
#include "tiers/mapping.hpp"
#include "tiers/memory_tier.hpp"

namespace terrace {
namespace {

constexpr int kRubbish = 0xDB;

bool overlap(const FakeDevice::Range& a, const FakeDevice::Range& b) {
  return a.begin < b.end && b.begin < a.end;
}

bool any_overlap(const std::vector<FakeDevice::Range>& some, const std::vector<FakeDevice::Range>& others) {
  return std::any_of(some.begin(), some.end(), [&](const auto& a) {
    return std::any_of(others.begin(), others.end(), [&](const auto& b) { return overlap(a, b); });
  });
}

void keep_latest(std::vector<std::uint64_t>& clock, const std::vector<std::uint64_t>& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

std::uint64_t at(const std::vector<std::uint64_t>& clock, std::size_t queue) {
  return queue < clock.size() ? clock[queue] : 0;
}

std::uint64_t hash_of(const std::byte* bytes, std::uint64_t size) {
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes), size});
}

FakeDevice::Range range_of(const std::byte* memory, Bytes bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  return {begin, begin + bytes.count};
}
FakeDevice::Range range_of(DeviceAddress address, Bytes bytes) {
  return {address.value, address.value + bytes.count};
}

std::string next_name() {
  static std::atomic<unsigned> number = 0;
  return fmt::format("fake device {}", number++);
}

Mapping map_shared(int file, std::size_t bytes, int access) {
  void* const start = mmap(nullptr, bytes, access, MAP_SHARED, file, 0);
  if (start == MAP_FAILED) {
    const int cause = errno;
    throw EnvironmentError(fmt::format("a fake device cannot map {} ({}): ask for less",
                                       readable(Bytes{bytes}), std::strerror(cause)),
                           {"fake", {}, 0, cause});
  }
  return {start, bytes};
}

}  // namespace

/// The same memory twice: once as the addresses handed out, once for the device.
class FakeDevice::Allocation final : public DeviceAllocation {
 public:
  Allocation(FakeDevice& device, std::size_t bytes) : device_(device) {
    const int file = memfd_create("terrace-fake-device", MFD_CLOEXEC);
    check(file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0, "a fake device gets its memory");
    outside_ = map_shared(file, bytes, PROT_NONE);
    inside_ = map_shared(file, bytes, PROT_READ | PROT_WRITE);
    close(file);
  }
  ~Allocation() override {
    const std::lock_guard lock(device_.mutex_);
    if (device_.used_by_waiting(range(), false)) {
      device_.violations_.push_back("memory was freed while operations that use it had not yet run");
      device_.run_all();
    }
    std::erase(device_.allocations_, this);
  }

  DeviceAddress address() const noexcept override { return {range().begin}; }
  Range range() const noexcept { return range_of(outside_.data(), {outside_.size()}); }
  std::byte* inside() const noexcept { return inside_.data(); }

 private:
  FakeDevice& device_;
  Mapping outside_, inside_;
};

class FakeDevice::Pin final : public DevicePin {
 public:
  Pin(FakeDevice& device, Range range) : device_(device), range_(range) {}
  ~Pin() override {
    const std::lock_guard lock(device_.mutex_);
    if (device_.used_by_waiting(range_, false)) {
      device_.violations_.push_back("memory was unpinned while operations that use it had not yet run");
      device_.run_all();
    }
    const auto mine = std::find_if(device_.pins_.begin(), device_.pins_.end(),
                                   [&](const Range& other) { return other.begin == range_.begin; });
    if (mine != device_.pins_.end()) device_.pins_.erase(mine);
  }

 private:
  FakeDevice& device_;
  const Range range_;
};

class FakeDevice::Event final : public DeviceEvent {
 public:
  explicit Event(FakeDevice& device) : device_(device) {}

  bool done() override {
    const std::lock_guard lock(device_.mutex_);
    device_.require_alive();
    if (!mark_) return true;
    if (!device_.over(*mark_)) device_.run_for(*mark_);
    if (!device_.over(*mark_)) return false;
    device_.seen_by_host(clock_);
    return true;
  }
  void wait() override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("waiting for an event");
    if (!mark_) return;
    device_.run_until(*mark_);
    device_.seen_by_host(clock_);
  }

 private:
  friend class Queue;
  FakeDevice& device_;
  std::optional<Mark> mark_;
  Clock clock_;  // of the queue at the mark
};

class FakeDevice::Queue final : public DeviceQueue {
 public:
  Queue(FakeDevice& device, std::size_t number) : device_(device), number_(number) {}

  void copy_in(DeviceAddress to, const std::byte* from, Bytes bytes) override {
    copy("copy in", range_of(to, bytes), range_of(from, bytes));
  }
  void copy_out(std::byte* to, DeviceAddress from, Bytes bytes) override {
    copy("copy out", range_of(to, bytes), range_of(from, bytes));
  }
  void copy_within(DeviceAddress to, DeviceAddress from, Bytes bytes) override {
    copy("copy within", range_of(to, bytes), range_of(from, bytes));
  }
  void record(DeviceEvent& event) override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("recording an event");
    device_.issue(number_, {"event", {}, {}, {}, {}, {}, false});
    Event& mine = static_cast<Event&>(event);
    mine.mark_ = Mark{number_, lane().issued};
    mine.clock_ = lane().clock;
  }
  void wait_for(DeviceEvent& event) override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("making a queue wait");
    const Event& other = static_cast<Event&>(event);
    if (!other.mark_) return;
    keep_latest(lane().clock, other.clock_);
    device_.issue(number_, {"wait", {}, {}, {}, other.mark_, {}, false});
  }
  void finish() override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("waiting for a queue");
    device_.run_until({number_, lane().issued});
    device_.seen_by_host(lane().clock);
  }

  std::size_t number() const noexcept { return number_; }

 private:
  Lane& lane() { return device_.lanes_[number_]; }
  void copy(const char* what, Range to, Range from) {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call(what);
    ++device_.copies_;
    FakeDevice& device = device_;
    device_.issue(number_, {fmt::format("{} of {} bytes on queue {}", what, to.end - to.begin, number_),
                            {from},
                            {to},
                            [&device, to, from] {
                              std::memcpy(device.host_view(to.begin), device.host_view(from.begin),
                                          to.end - to.begin);
                            },
                            {},
                            {},
                            false});
  }

  FakeDevice& device_;
  const std::size_t number_;
};

FakeDevice::FakeDevice(Schedule schedule, std::uint64_t seed)
    : name_(next_name()), schedule_(schedule), random_(seed) {}

FakeDevice::~FakeDevice() = default;

std::unique_ptr<DeviceAllocation> FakeDevice::allocate(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  count_call("allocating");
  auto allocation = std::make_unique<Allocation>(*this, round_up(bytes, page_size()).count);
  allocations_.push_back(allocation.get());
  return allocation;
}

std::unique_ptr<DeviceQueue> FakeDevice::make_queue() {
  const std::lock_guard lock(mutex_);
  require_alive();
  lanes_.emplace_back();
  return std::make_unique<Queue>(*this, lanes_.size() - 1);
}

std::unique_ptr<DeviceEvent> FakeDevice::make_event() {
  const std::lock_guard lock(mutex_);
  require_alive();
  return std::make_unique<Event>(*this);
}

std::unique_ptr<DevicePin> FakeDevice::pin(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  count_call("pinning");
  const Range range = range_of(memory.data(), {memory.size()});
  pins_.push_back(range);
  return std::make_unique<Pin>(*this, range);
}

bool FakeDevice::reaches(std::span<const std::byte> memory) {
  const std::lock_guard lock(mutex_);
  return pinned(range_of(memory.data(), {memory.size()}));
}

void FakeDevice::launch(DeviceQueue& queue, std::vector<Range> reads, std::vector<Range> writes,
                        std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  count_call("launching");
  const std::size_t number = static_cast<Queue&>(queue).number();
  issue(number, {fmt::format("kernel on queue {}", number),
                 std::move(reads),
                 std::move(writes),
                 std::move(work),
                 {},
                 {},
                 false});
}

// Without the lock: kernels call it while they run, and allocations are constant then.
std::byte* FakeDevice::bytes_at(DeviceAddress address) {
  check(on_device(address.value), "the address lies in memory of the fake device");
  return host_view(address.value);
}

void FakeDevice::fail_call(std::uint64_t nth) {
  const std::lock_guard lock(mutex_);
  failing_call_ = nth;
}

void FakeDevice::fail_run(std::uint64_t nth) {
  const std::lock_guard lock(mutex_);
  failing_run_ = nth;
}

void FakeDevice::heal() {
  const std::lock_guard lock(mutex_);
  failing_call_ = failing_run_ = 0;
  lost_ = false;
  for (Lane& lane : lanes_) {
    lane.waiting.clear();
    lane.run = lane.issued;
    seen_by_host(lane.clock);
  }
}

std::uint64_t FakeDevice::copies() const {
  const std::lock_guard lock(mutex_);
  return copies_;
}

std::vector<std::string> FakeDevice::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

void FakeDevice::require_alive() const {
  if (!lost_) return;
  throw EnvironmentError(name_ + " is lost, as scripted: open it again and go on from the last checkpoint",
                         {name_, {}, 0, ENODEV});
}

void FakeDevice::count_call(const char* what) {
  require_alive();
  if (failing_call_ == 0 || --failing_call_ > 0) return;
  throw EnvironmentError(fmt::format("{} on {} failed, as scripted: try again", what, name_),
                         {name_, {}, 0, EIO});
}

void FakeDevice::issue(std::size_t queue, Operation operation) {
  Lane& lane = lanes_[queue];
  keep_latest(lane.clock, host_);
  require_pinned(operation);
  note_races(queue, operation);
  hash_and_poison(operation);
  lane.clock.resize(std::max(lane.clock.size(), queue + 1));
  lane.clock[queue] = ++lane.issued;
  if (!operation.reads.empty() || !operation.writes.empty()) {
    issued_.push_back({{queue, lane.issued}, operation.what, operation.reads, operation.writes});
  }
  lane.waiting.push_back(std::move(operation));
  if (schedule_ == Schedule::eager) run_all();
  // A GPU works on without being asked.
  while (schedule_ == Schedule::random && random_() % 4 == 0 && run_any()) {
  }
}

void FakeDevice::note_races(std::size_t queue, const Operation& operation) {
  std::erase_if(issued_, [&](const Issued& past) { return past.mark.index <= at(host_, past.mark.queue); });
  const Clock& clock = lanes_[queue].clock;
  for (const Issued& past : issued_) {
    const bool ordered = past.mark.queue == queue || past.mark.index <= at(clock, past.mark.queue);
    if (ordered) continue;
    if (any_overlap(operation.writes, past.writes) || any_overlap(operation.writes, past.reads) ||
        any_overlap(operation.reads, past.writes)) {
      violations_.push_back(
          fmt::format("nothing puts {} behind {}, which uses the same bytes", operation.what, past.what));
    }
  }
}

void FakeDevice::require_pinned(const Operation& operation) {
  for (const auto* ranges : {&operation.reads, &operation.writes}) {
    for (const Range& range : *ranges) {
      if (on_device(range.begin) || pinned(range)) continue;
      violations_.push_back(operation.what + " uses host memory that is not pinned");
    }
  }
}

// What is waiting to run may use these bytes first, and then their value now means nothing.
void FakeDevice::hash_and_poison(Operation& operation) {
  operation.hashed = std::none_of(operation.reads.begin(), operation.reads.end(),
                                  [&](const Range& range) { return used_by_waiting(range, true); });
  for (const Range& range : operation.reads) {
    operation.hashes.push_back(hash_of(host_view(range.begin), range.end - range.begin));
  }
  for (const Range& range : operation.writes) {
    const bool updated = any_overlap({range}, operation.reads);
    if (updated || used_by_waiting(range, false)) continue;
    std::memset(host_view(range.begin), kRubbish, range.end - range.begin);
  }
}

bool FakeDevice::used_by_waiting(const Range& range, bool only_written) const {
  for (const Lane& lane : lanes_) {
    for (const Operation& operation : lane.waiting) {
      if (any_overlap({range}, operation.writes)) return true;
      if (!only_written && any_overlap({range}, operation.reads)) return true;
    }
  }
  return false;
}

bool FakeDevice::pinned(const Range& range) const {
  return std::any_of(pins_.begin(), pins_.end(),
                     [&](const Range& pin) { return pin.begin <= range.begin && range.end <= pin.end; });
}

bool FakeDevice::on_device(std::uint64_t address) const {
  return std::any_of(allocations_.begin(), allocations_.end(), [&](const Allocation* allocation) {
    return overlap(allocation->range(), {address, address + 1});
  });
}

std::byte* FakeDevice::host_view(std::uint64_t address) {
  for (const Allocation* allocation : allocations_) {
    if (overlap(allocation->range(), {address, address + 1})) {
      return allocation->inside() + (address - allocation->range().begin);
    }
  }
  return reinterpret_cast<std::byte*>(address);
}

bool FakeDevice::may_run(const Lane& lane) const {
  return !lane.waiting.empty() && (!lane.waiting.front().after || over(*lane.waiting.front().after));
}

void FakeDevice::run_next(Lane& lane) {
  Operation operation = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  ++lane.run;
  if (!operation.work) return;
  if (failing_run_ > 0 && --failing_run_ == 0) lost_ = true;
  require_alive();
  for (std::size_t i = 0; operation.hashed && i < operation.reads.size(); ++i) {
    const Range& range = operation.reads[i];
    if (hash_of(host_view(range.begin), range.end - range.begin) != operation.hashes[i]) {
      violations_.push_back("the source of " + operation.what + " changed after it was issued");
    }
  }
  operation.work();
}

bool FakeDevice::run_any() {
  std::vector<Lane*> ready;
  for (Lane& lane : lanes_) {
    if (may_run(lane)) ready.push_back(&lane);
  }
  if (ready.empty()) return false;
  run_next(*ready[random_() % ready.size()]);
  return true;
}

void FakeDevice::run_all() {
  while (run_any()) {
  }
}

void FakeDevice::run_until(const Mark& mark) {
  require_alive();
  while (!over(mark)) {
    if (schedule_ == Schedule::lazy) {
      run_for(mark);
    } else {
      check(run_any(), "queues that wait for each other never go on");
    }
  }
  require_alive();
}

// One operation on the way to the mark.
void FakeDevice::run_for(const Mark& mark) {
  if (schedule_ == Schedule::random) {
    run_any();
    return;
  }
  Mark next = mark;
  while (lanes_[next.queue].waiting.front().after && !over(*lanes_[next.queue].waiting.front().after)) {
    next = *lanes_[next.queue].waiting.front().after;
  }
  run_next(lanes_[next.queue]);
}

void FakeDevice::seen_by_host(const Clock& clock) { keep_latest(host_, clock); }

Result<std::unique_ptr<Tier>> open_fake_device_tier(const TierSpec& spec,
                                                    std::shared_ptr<FakeDevice> device) {
  check(spec.kind == TierKind::fake && spec.on_device, "open_fake_device_tier() takes a fake device's spec");
  auto description = describe(spec, kDeviceGranule);
  if (!description) return description.error();
  description->addressable = false;
  if (const auto enough = require_memory(description->capacity, description->name); !enough)
    return enough.error();
  return std::unique_ptr<Tier>(std::make_unique<DeviceTier>(std::move(*description), std::move(device)));
}

std::unique_ptr<Tier> make_pinned_for(std::shared_ptr<Device> device, Bytes capacity) {
  TierSpec spec;
  spec.kind = TierKind::pinned;
  spec.capacity = capacity;
  TierDescription description = describe(spec, kCacheLine).value();
  Mapping memory = map_anonymous(description.capacity, description.name);
  return std::make_unique<PinnedTier>(std::move(description), std::move(memory), std::move(device));
}

}  // namespace terrace
