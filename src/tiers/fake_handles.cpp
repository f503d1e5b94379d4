// SPDX-License-Identifier: Apache-2.0
// What a fake device hands out: queues, events, flags, pins and allocations. Each takes the device's lock.
#include <fmt/format.h>

#include <cstring>

#include "tiers/fake_device.hpp"

namespace terrace {
namespace {

FakeRange range_of(const std::byte* memory, Bytes bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  return {begin, begin + bytes.count};
}
FakeRange range_of(DeviceAddress address, Bytes bytes) {
  return {address.value, address.value + bytes.count};
}

}  // namespace

class FakeDevice::Allocation final : public DeviceAllocation {
 public:
  Allocation(FakeDevice& device, Range range) : device_(device), range_(range) {}
  ~Allocation() override {
    const std::lock_guard lock(device_.mutex_);
    if (device_.in_use(range_)) {
      device_.order_.note("memory was freed while operations that use it had not yet run");
      device_.run_all();
    }
    device_.memory_.free(range_);
  }

  DeviceAddress address() const noexcept override { return {range_.begin}; }

 private:
  FakeDevice& device_;
  const Range range_;
};

class FakeDevice::Pin final : public DevicePin {
 public:
  Pin(FakeDevice& device, Range range) : device_(device), range_(range) {}
  ~Pin() override {
    const std::lock_guard lock(device_.mutex_);
    if (device_.in_use(range_)) {
      device_.order_.note("memory was unpinned while operations that use it had not yet run");
      device_.run_all();
    }
    device_.memory_.unpin(range_);
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
    if (!device_.over(*mark_)) device_.run_towards(*mark_);
    if (!device_.over(*mark_)) return false;
    device_.order_.seen(past_);
    return true;
  }
  void wait() override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("waiting for an event");
    if (!mark_) return;
    device_.run_until(*mark_);
    device_.order_.seen(past_);
  }

 private:
  friend class Queue;
  FakeDevice& device_;
  std::optional<Mark> mark_;
  FakeOrder::Past past_;  // of the queue at the mark
};

class FakeDevice::Flag final : public DeviceFlag {
 public:
  Flag(FakeDevice& device, std::size_t number) : device_(device), number_(number) {}

  void raise(std::uint32_t to) noexcept override {
    const std::lock_guard lock(device_.mutex_);
    device_.order_.raise({number_, to});
    device_.prepare_behind_flags();
    device_.raised_.notify_all();
  }
  std::uint32_t value() const noexcept override {
    const std::lock_guard lock(device_.mutex_);
    return device_.order_.value(number_);
  }
  std::size_t number() const noexcept { return number_; }

 private:
  FakeDevice& device_;
  const std::size_t number_;
};

struct FakeDevice::Bundle final : DeviceBundle {
  std::vector<Operation> kernels;
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
    if (device_.forgets_order()) return;
    device_.issue(number_, {"event", {}, {}, {}});
    Event& mine = static_cast<Event&>(event);
    mine.mark_ = Mark{number_, device_.lanes_[number_].issued};
    mine.past_ = device_.order_.past(number_);
  }
  void wait_for(DeviceEvent& event) override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("making a queue wait");
    const Event& other = static_cast<Event&>(event);
    if (device_.forgets_order() || !other.mark_) return;
    device_.order_.wait(number_, other.past_);
    device_.issue(number_, {"wait", {}, {}, {}, other.mark_});
  }
  void wait_for(DeviceFlag& flag, std::uint32_t value) override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("making a queue wait for a flag");
    if (device_.forgets_order()) return;
    const FlagWait wait{static_cast<Flag&>(flag).number(), value};
    device_.order_.wait(number_, wait);
    device_.issue(number_, {"wait for a flag", {}, {}, {}, {}, wait});
  }
  void raise(DeviceFlag& flag, std::uint32_t to) override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("raising a flag");
    device_.issue(number_,
                  {"raising a flag", {}, {}, {}, {}, {}, FlagWait{static_cast<Flag&>(flag).number(), to}});
  }
  void begin_bundle() override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("beginning a bundle");
    bundle_ = std::make_unique<Bundle>();
  }
  std::unique_ptr<DeviceBundle> end_bundle() override {
    const std::lock_guard lock(device_.mutex_);
    const std::unique_ptr<Bundle> dropped_if_it_fails = std::move(bundle_);
    device_.count_call("ending a bundle");
    return std::make_unique<Bundle>(*dropped_if_it_fails);
  }
  void issue(DeviceBundle& bundle) override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("issuing a bundle");
    for (const Operation& kernel : static_cast<Bundle&>(bundle).kernels) device_.issue(number_, kernel);
  }
  void launch(Operation kernel) {
    if (bundle_) {
      bundle_->kernels.push_back(std::move(kernel));
    } else {
      device_.issue(number_, std::move(kernel));
    }
  }
  void finish() override {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call("waiting for a queue");
    device_.run_until({number_, device_.lanes_[number_].issued});
    device_.order_.seen(device_.order_.past(number_));
  }

  std::size_t number() const noexcept { return number_; }

 private:
  void copy(const char* what, Range to, Range from) {
    const std::lock_guard lock(device_.mutex_);
    device_.count_call(what);
    ++device_.copies_;
    const FakeMemory& memory = device_.memory_;
    device_.issue(number_, {fmt::format("{} of {} bytes on queue {}", what, to.end - to.begin, number_),
                            {from},
                            {to},
                            [&memory, to, from] {
                              std::memcpy(memory.inside(to.begin), memory.inside(from.begin),
                                          to.end - to.begin);
                            }});
  }

  FakeDevice& device_;
  const std::size_t number_;
  std::unique_ptr<Bundle> bundle_;  // while there is one that has not ended
};

std::unique_ptr<DeviceAllocation> FakeDevice::allocate(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  count_call("allocating");
  return std::make_unique<Allocation>(*this, memory_.allocate(round_up(bytes, page_size()).count));
}

std::unique_ptr<DeviceQueue> FakeDevice::make_queue() {
  const std::lock_guard lock(mutex_);
  require_alive();
  lanes_.emplace_back();
  return std::make_unique<Queue>(*this, order_.add_queue());
}

std::unique_ptr<DeviceEvent> FakeDevice::make_event() {
  const std::lock_guard lock(mutex_);
  require_alive();
  return std::make_unique<Event>(*this);
}

std::unique_ptr<DeviceFlag> FakeDevice::make_flag() {
  const std::lock_guard lock(mutex_);
  require_alive();
  if (flags_ == Flags::refused) return nullptr;
  return std::make_unique<Flag>(*this, order_.add_flag());
}

std::unique_ptr<DevicePin> FakeDevice::pin(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  count_call("pinning");
  const Range range = range_of(memory.data(), {memory.size()});
  memory_.pin(range);
  return std::make_unique<Pin>(*this, range);
}

bool FakeDevice::reaches(std::span<const std::byte> memory) {
  const std::lock_guard lock(mutex_);
  return memory_.is_pinned(range_of(memory.data(), {memory.size()}));
}

void FakeDevice::launch(DeviceQueue& queue, FakeRanges reads, FakeRanges writes, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  count_call("launching");
  Queue& mine = static_cast<Queue&>(queue);
  mine.launch({fmt::format("kernel on queue {}", mine.number()), std::move(reads), std::move(writes),
               std::move(work)});
}

}  // namespace terrace
