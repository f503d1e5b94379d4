// SPDX-License-Identifier: Apache-2.0
#include "tiers/fake_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/check.hpp"
#include "terrace/error.hpp"
#include "tiers/device_tier.hpp"
#include "tiers/mapping.hpp"
#include "tiers/memory_tier.hpp"

namespace terrace {
namespace {

std::string next_name() {
  static std::atomic<unsigned> number = 0;
  return fmt::format("fake device {}", number++);
}

}  // namespace

FakeDevice::FakeDevice(Schedule schedule, std::uint64_t seed, Flags flags)
    : name_(next_name()), schedule_(schedule), flags_(flags), random_(seed) {}

FakeDevice::~FakeDevice() = default;

// Without the lock: kernels call it while they run, and allocations are constant then.
std::byte* FakeDevice::bytes_at(DeviceAddress address) {
  check(memory_.reaches({address.value, address.value + 1}), "the fake device reaches the address");
  return memory_.inside(address.value);
}

void FakeDevice::fail_call(std::uint64_t nth) {
  const std::lock_guard lock(mutex_);
  failing_call_ = nth;
}

void FakeDevice::fail_run(std::uint64_t nth) {
  const std::lock_guard lock(mutex_);
  failing_run_ = nth;
}

void FakeDevice::forget_call(std::uint64_t nth) {
  const std::lock_guard lock(mutex_);
  forgotten_call_ = nth;
}

void FakeDevice::heal() {
  const std::lock_guard lock(mutex_);
  failing_call_ = failing_run_ = forgotten_call_ = 0;
  lost_ = false;
  for (std::size_t queue = 0; queue < lanes_.size(); ++queue) {
    Lane& lane = lanes_[queue];
    lane.waiting.clear();
    lane.run = lane.issued;
    order_.seen(order_.past(queue));
  }
}

std::uint64_t FakeDevice::copies() const {
  const std::lock_guard lock(mutex_);
  return copies_;
}

std::uint64_t FakeDevice::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::uint64_t FakeDevice::order_calls() const {
  const std::lock_guard lock(mutex_);
  return order_calls_;
}

std::vector<std::string> FakeDevice::violations() const {
  const std::lock_guard lock(mutex_);
  return order_.violations();
}

void FakeDevice::require_alive() const {
  if (!lost_) return;
  throw EnvironmentError(name_ + " is lost, as scripted: open it again and go on from the last checkpoint",
                         {name_, {}, 0, ENODEV});
}

void FakeDevice::count_call(const char* what) {
  require_alive();
  ++calls_;
  if (failing_call_ == 0 || --failing_call_ > 0) return;
  throw EnvironmentError(fmt::format("{} on {} failed, as scripted: try again", what, name_),
                         {name_, {}, 0, EIO});
}

bool FakeDevice::forgets_order() {
  ++order_calls_;
  return forgotten_call_ > 0 && --forgotten_call_ == 0;
}

void FakeDevice::issue(std::size_t queue, Operation operation) {
  Lane& lane = lanes_[queue];
  for (const auto* ranges : {&operation.reads, &operation.writes}) {
    if (!std::all_of(ranges->begin(), ranges->end(), [&](const Range& one) { return memory_.reaches(one); }))
      order_.note(operation.what + " uses host memory that is not pinned");
  }
  lane.issued = order_.issue(queue, operation.what, operation.reads, operation.writes).index;
  operation.number = ++operations_;
  operation.past = order_.past(queue);
  if (operation.past.flags.empty()) prepare(operation);
  lane.waiting.push_back(std::move(operation));
  if (schedule_ == Schedule::eager) run_all();
  // A GPU works on without being asked.
  while (schedule_ == Schedule::random && random_() % 4 == 0 && run_any()) {
  }
}

// Hashes sources and fills destinations with rubbish. What is waiting to run may use these bytes first, and
// then their value now means nothing.
void FakeDevice::prepare(Operation& operation) {
  operation.prepared = true;
  const bool settled = std::none_of(operation.reads.begin(), operation.reads.end(),
                                    [&](const Range& range) { return used_before(&operation, range, true); });
  for (const Range& range : operation.reads) {
    if (settled) operation.hashes.push_back(memory_.hash(range));
  }
  for (const Range& range : operation.writes) {
    const bool updated = any_overlap({range}, operation.reads);
    if (!updated && !used_before(&operation, range, false)) memory_.fill_with_rubbish(range);
  }
}

// A destination behind a flag belongs to whoever raises it until then.
void FakeDevice::prepare_behind_flags() {
  std::vector<Operation*> free;
  for (Lane& lane : lanes_) {
    for (Operation& operation : lane.waiting) {
      const auto& flags = operation.past.flags;
      if (!operation.prepared && std::all_of(flags.begin(), flags.end(),
                                             [&](const FlagWait& wait) { return order_.is_raised(wait); }))
        free.push_back(&operation);
    }
  }
  std::sort(free.begin(), free.end(),
            [](const Operation* a, const Operation* b) { return a->number < b->number; });
  for (Operation* operation : free) prepare(*operation);
}

// By an operation that waits to run and was issued before this one, or by any.
bool FakeDevice::used_before(const Operation* operation, const Range& range, bool only_written) const {
  for (const Lane& lane : lanes_) {
    for (const Operation& other : lane.waiting) {
      if (operation != nullptr && other.number >= operation->number) continue;
      if (any_overlap({range}, other.writes)) return true;
      if (!only_written && any_overlap({range}, other.reads)) return true;
    }
  }
  return false;
}

bool FakeDevice::may_run(const Lane& lane) const {
  if (lane.waiting.empty()) return false;
  const Operation& next = lane.waiting.front();
  return (!next.after || over(*next.after)) && (!next.after_flag || order_.is_raised(*next.after_flag));
}

void FakeDevice::run_next(Lane& lane) {
  Operation operation = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  ++lane.run;
  if (operation.raises) {
    order_.raise(*operation.raises, operation.past);
    prepare_behind_flags();
    raised_.notify_all();
  }
  if (!operation.work) return;
  if (failing_run_ > 0 && --failing_run_ == 0) {
    lost_ = true;
    raised_.notify_all();
  }
  require_alive();
  for (std::size_t i = 0; i < operation.hashes.size(); ++i) {
    if (memory_.hash(operation.reads[i]) != operation.hashes[i])
      order_.note("the source of " + operation.what + " changed after it was issued");
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
    if (run_towards(mark)) continue;
    const bool flag = std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
      return !lane.waiting.empty() && lane.waiting.front().after_flag &&
             !order_.is_raised(*lane.waiting.front().after_flag);
    });
    check(flag, "queues that wait for each other never go on");
    raised_.wait(mutex_);  // the caller holds the lock
    require_alive();
  }
  require_alive();
}

// One operation on the way to the mark. Returns false where only the host can go on, by raising a flag.
bool FakeDevice::run_towards(const Mark& mark) {
  if (schedule_ != Schedule::lazy) return run_any();
  std::optional<Mark> next = mark;
  // Each queue on the way is blocked by another: a way that is longer than there are queues is a circle.
  for (std::size_t i = 0; next && i <= lanes_.size(); ++i) {
    Lane& lane = lanes_[next->queue];
    if (may_run(lane)) {
      run_next(lane);
      return true;
    }
    const Operation& first = lane.waiting.front();
    next = first.after && !over(*first.after) ? first.after : raiser_of(*first.after_flag);
  }
  return false;
}

// The operation that will raise a flag so far, if one was issued.
std::optional<FakeDevice::Mark> FakeDevice::raiser_of(FlagWait flag) const {
  for (std::size_t queue = 0; queue < lanes_.size(); ++queue) {
    const Lane& lane = lanes_[queue];
    for (std::size_t i = 0; i < lane.waiting.size(); ++i) {
      const auto& raises = lane.waiting[i].raises;
      if (raises && raises->flag == flag.flag && raises->value >= flag.value)
        return Mark{queue, lane.run + i + 1};
    }
  }
  return std::nullopt;
}

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
  TierDescription description = describe(spec, kDeviceGranule).value();
  Mapping memory = map_anonymous(description.capacity, description.name);
  return std::make_unique<PinnedTier>(std::move(description), std::move(memory), std::move(device));
}

}  // namespace terrace
