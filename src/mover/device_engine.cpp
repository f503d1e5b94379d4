// SPDX-License-Identifier: Apache-2.0
#include "mover/device_engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mover/background.hpp"

namespace terrace {
namespace {

constexpr Bytes kBytesPerEvent{16 << 20};  // 0.3 ms on a link of 55 GB/s

std::vector<DeviceCopy> merged(std::vector<DeviceCopy> copies) {
  std::stable_sort(copies.begin(), copies.end(),
                   [](const DeviceCopy& a, const DeviceCopy& b) { return a.to < b.to; });
  std::size_t last = 0;
  for (std::size_t i = 1; i < copies.size(); ++i) {
    DeviceCopy& before = copies[last];
    const DeviceCopy& here = copies[i];
    if (before.to + before.bytes == here.to && before.from + before.bytes == here.from) {
      before.bytes += here.bytes;
    } else {
      copies[++last] = here;
    }
  }
  if (!copies.empty()) copies.resize(last + 1);
  return copies;
}

}  // namespace

DeviceTask::DeviceTask(Ticket& ticket, Direction direction, Tier& tier, std::uint64_t offset,
                       std::vector<DeviceCopy> copies)
    : ticket_(&ticket),
      direction_(direction),
      tier_(&tier),
      offset_(offset),
      copies_(merged(std::move(copies))) {
  for (const DeviceCopy& copy : copies_) bytes_ += Bytes{copy.bytes};
}

Direction direction_between(Tier& from, Tier& to) {
  if (from.device() == nullptr) return Direction::in;
  return to.device() == nullptr ? Direction::out : Direction::within;
}

std::uint64_t address_in(Tier& tier, std::uint64_t offset) {
  if (tier.device() != nullptr) return (tier.device()->address + offset).value;
  return reinterpret_cast<std::uint64_t>(tier.memory() + offset);
}

void issue_copy(DeviceQueue& queue, Direction direction, const DeviceCopy& copy) {
  switch (direction) {
    case Direction::in:
      queue.copy_in({copy.to}, reinterpret_cast<const std::byte*>(copy.from), {copy.bytes});
      break;
    case Direction::out:
      queue.copy_out(reinterpret_cast<std::byte*>(copy.to), {copy.from}, {copy.bytes});
      break;
    case Direction::within:
      queue.copy_within({copy.to}, {copy.from}, {copy.bytes});
      break;
  }
}

void DeviceTask::issue(DeviceQueue& queue) const {
  for (const DeviceCopy& copy : copies_) issue_copy(queue, direction_, copy);
}

void DeviceTask::fail() noexcept {
  try {
    throw;
  } catch (const EnvironmentError& error) {
    EnvironmentError::Place place = error.place();
    place.tier = tier_->description().name;
    place.offset = offset_;
    ticket_->fail(Failure(EnvironmentError(
        fmt::format("{} (in a transfer at offset {} of {})", error.what(), offset_, place.tier), place)));
  } catch (...) {
    ticket_->fail(Failure::current());
  }
}

DeviceEngine::DeviceEngine(Device& device) : device_(device) {
  for (auto& lane : lanes_) lane = std::make_unique<Lane>(device);
}

void DeviceEngine::start(std::shared_ptr<DeviceTask> task) {
  Lane& lane = *lanes_[static_cast<std::size_t>(task->direction())];
  lane.start(std::move(task));
}

void DeviceEngine::stop() noexcept {
  for (auto& lane : lanes_) lane->stop();
}

DeviceEngine::Lane::Lane(Device& device) : device_(device), queue_(device.make_queue()) {
  thread_ = std::thread(&Lane::run, this);
}

// What is issued under the lock is closed in the same order.
void DeviceEngine::Lane::start(std::shared_ptr<DeviceTask> task) {
  const std::lock_guard lock(mutex_);
  Entry entry{std::move(task), nullptr};
  try {
    if (!entry.task->ticket().failed()) entry.task->issue(*queue_);
    unmarked_ += entry.task->bytes();
  } catch (...) {
    entry.task->fail();
    entry.refused = true;
  }
  if (unmarked_ >= kBytesPerEvent && !entry.refused) mark(entry);
  under_way_.push_back(std::move(entry));
  changed_.notify_one();
}

void DeviceEngine::Lane::mark(Entry& entry) noexcept {
  try {
    std::unique_ptr<DeviceEvent> event;
    if (spare_.empty()) {
      event = device_.make_event();
    } else {
      event = std::move(spare_.back());
      spare_.pop_back();
    }
    queue_->record(*event);
    entry.event = std::move(event);
    unmarked_ = {};
  } catch (...) {
    entry.task->fail();
    entry.refused = true;
  }
}

void DeviceEngine::Lane::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void DeviceEngine::Lane::run() noexcept {
  work_in_short_turns();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !under_way_.empty(); });
    if (under_way_.empty()) return;
    std::vector<Entry> group = take_group();
    lock.unlock();
    see_through(group);
    for (Entry& entry : group) {
      entry.task->finished(!entry.task->ticket().failed());
      entry.task.reset();  // may be the end of the transfer's memory, which is not freed under the lock
    }
    lock.lock();
    if (group.back().event) spare_.push_back(std::move(group.back().event));
  }
}

/// Takes the oldest transfers up to the next event. Where there is none, now is the time for one.
/// pre: something is under way
std::vector<DeviceEngine::Lane::Entry> DeviceEngine::Lane::take_group() noexcept {
  auto last = std::find_if(under_way_.begin(), under_way_.end(),
                           [](const Entry& entry) { return entry.ends_a_group(); });
  if (last == under_way_.end()) mark(*--last);
  std::vector<Entry> group(std::make_move_iterator(under_way_.begin()), std::make_move_iterator(last + 1));
  under_way_.erase(under_way_.begin(), last + 1);
  return group;
}

void DeviceEngine::Lane::see_through(std::vector<Entry>& group) noexcept {
  // Which of them it was that went wrong, the device does not say.
  const auto fail_all = [&] {
    for (const Entry& entry : group) entry.task->fail();
  };
  try {
    if (group.back().event) group.back().event->wait();
  } catch (...) {
    fail_all();
    group.back().event.reset();
  }
  if (group.back().event) return;
  // What was issued before the device refused still uses its memory.
  try {
    queue_->finish();
  } catch (...) {
    fail_all();  // a device that is lost uses nothing any more
  }
}

}  // namespace terrace
