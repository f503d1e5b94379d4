// SPDX-License-Identifier: Apache-2.0
#include "mover/device_engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mover/background.hpp"

namespace terrace {
namespace {

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

std::unique_ptr<DeviceEvent> DeviceEngine::Lane::take_event() {
  if (spare_.empty()) return device_.make_event();
  auto event = std::move(spare_.back());
  spare_.pop_back();
  return event;
}

// What is issued under the lock is closed in the same order.
void DeviceEngine::Lane::start(std::shared_ptr<DeviceTask> task) {
  const std::lock_guard lock(mutex_);
  Entry entry{std::move(task), nullptr};
  try {
    auto event = take_event();
    if (!entry.task->ticket().failed()) entry.task->issue(*queue_);
    queue_->record(*event);
    entry.event = std::move(event);
  } catch (...) {
    entry.task->fail();
  }
  under_way_.push_back(std::move(entry));
  changed_.notify_one();
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
    Entry entry = std::move(under_way_.front());
    under_way_.pop_front();
    lock.unlock();
    const bool complete = see_through(entry);
    entry.task->finished(complete);
    entry.task.reset();  // may be the end of the transfer's memory, which is not freed under the lock
    lock.lock();
    if (entry.event) spare_.push_back(std::move(entry.event));
  }
}

bool DeviceEngine::Lane::see_through(Entry& entry) noexcept {
  try {
    if (entry.event) entry.event->wait();
  } catch (...) {
    entry.task->fail();
    entry.event.reset();
  }
  if (!entry.event) finish_all(*entry.task);
  return !entry.task->ticket().failed();
}

// What was issued before the device refused still uses its memory.
void DeviceEngine::Lane::finish_all(DeviceTask& task) noexcept {
  try {
    queue_->finish();
  } catch (...) {
    task.fail();  // a device that is lost uses nothing any more
  }
}

}  // namespace terrace
