// SPDX-License-Identifier: Apache-2.0
#include "mover/relay.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "mover/pace.hpp"
#include "mover/stream_copy.hpp"

namespace terrace {

// Two threads are as fast as any link that the relay serves.
constexpr unsigned kCopyThreads = 2;

// A DiskLeg reads or writes one buffer on one disk.
class Relay::DiskLeg final : public DiskTask {
 public:
  DiskLeg(Relay& relay, RelayBuffer& buffer, Access access, const DiskMove& move)
      : DiskTask(buffer.job->ticket, access, nullptr, {move}), relay_(relay), buffer_(buffer) {}

  void moved(Bytes) noexcept override {}
  void finished(bool complete) noexcept override { relay_.leg_ended(buffer_, access(), complete); }

 private:
  Relay& relay_;
  RelayBuffer& buffer_;
};

// A DeviceLeg copies one buffer to or from a device.
class Relay::DeviceLeg final : public DeviceTask {
 public:
  DeviceLeg(Relay& relay, RelayBuffer& buffer, Access access, Tier& tier, std::uint64_t offset,
            const DeviceCopy& copy)
      : DeviceTask(buffer.job->ticket, access == Access::read ? Direction::out : Direction::in, tier, offset,
                   {copy}),
        relay_(relay),
        buffer_(buffer),
        access_(access) {}

  void finished(bool complete) noexcept override { relay_.leg_ended(buffer_, access_, complete); }

 private:
  Relay& relay_;
  RelayBuffer& buffer_;
  Access access_;
};

Relay::Relay(const std::vector<std::unique_ptr<BlockEngine>>& disks,
             const std::vector<DeviceEngine*>& devices, std::vector<Tier*> tiers, std::span<std::byte> memory,
             std::size_t buffer_bytes)
    : disks_(disks),
      devices_(devices),
      tiers_(std::move(tiers)),
      buffer_bytes_(buffer_bytes),
      buffers_(memory.size() / buffer_bytes) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].memory = memory.data() + i * buffer_bytes;
    free_.push_back(&buffers_[i]);
  }
  if (std::any_of(devices_.begin(), devices_.end(), [](const DeviceEngine* one) { return one != nullptr; })) {
    copy_pool_ = std::make_unique<CopyPool>(kCopyThreads);
  }
}

void Relay::start(std::shared_ptr<RelayJob> job) {
  std::unique_lock lock(mutex_);
  job->waiting = true;
  waiting_.push_back(std::move(job));
  ++open_;
  fill_buffers(lock);
}

void Relay::stop() noexcept {
  {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return open_ == 0; });
  }
  copy_pool_.reset();  // its threads may hold the last share of a transfer, and so of this relay
}

// Starts reads into free buffers while jobs have bytes left.
void Relay::fill_buffers(std::unique_lock<std::mutex>& lock) {
  while (!free_.empty() && !waiting_.empty()) {
    const std::shared_ptr<RelayJob> job = best_job();
    if (job->ticket.failed()) {
      job->incomplete = true;
      drop(job);
      continue;
    }
    RelayBuffer& buffer = *free_.back();
    free_.pop_back();
    buffer.job = job;
    ++job->buffers_in_use;
    cut(*job, buffer);
    if (job->next_move == job->moves.size()) drop(job);
    lock.unlock();
    start_leg(buffer, Access::read);
    lock.lock();
  }
}

std::shared_ptr<RelayJob> Relay::best_job() {
  return *std::max_element(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) {
    return a->ticket.priority() < b->ticket.priority();
  });
}

void Relay::drop(const std::shared_ptr<RelayJob>& job) {
  waiting_.remove(job);
  job->waiting = false;
  close_if_ended(*job);
}

// Cuts the next part of the job: as much as fits into the buffer when read in whole blocks. It ends at a
// block boundary of the destination where it can, so that no block there is written twice.
void Relay::cut(RelayJob& job, RelayBuffer& buffer) {
  const Move& move = job.moves[job.next_move];
  const std::uint64_t position = job.next_position;
  const std::uint64_t from = move.from.offset + position, to = move.to.offset + position;
  const std::uint64_t left = move.from.bytes.count - position;
  std::uint64_t bytes = std::min<std::uint64_t>(left, buffer_bytes_ - from % block(move.from.tier));
  if (bytes < left) bytes -= (to + bytes) % block(move.to.tier);
  const bool last = bytes == left;
  const Bytes room = last ? move.to.bytes - Bytes{position} : Bytes{bytes};
  buffer.part = {{move.from.tier, from, {bytes}}, {move.to.tier, to, room}};
  job.next_position = last ? 0 : position + bytes;
  job.next_move += last ? 1 : 0;
}

void Relay::start_leg(RelayBuffer& buffer, Access leg) noexcept {
  const TierId tier = leg == Access::read ? buffer.part.from.tier : buffer.part.to.tier;
  try {
    if (disks_[tier.index] != nullptr) return start_on_disk(buffer, leg);
    if (devices_[tier.index] != nullptr) return start_on_device(buffer, leg);
    copy_pool_->start([this, &buffer, leg] { copy_memory(buffer, leg); });
  } catch (...) {
    buffer.job->ticket.fail(Failure::current());
    release(buffer, false);
  }
}

void Relay::start_on_disk(RelayBuffer& buffer, Access leg) {
  const Extent& from = buffer.part.from;
  const Extent& to = buffer.part.to;
  if (leg == Access::read) {
    const std::uint64_t skip = from.offset % block(from.tier);
    const Bytes whole = round_up(from.bytes + Bytes{skip}, Bytes{block(from.tier)});
    const DiskMove move{buffer.memory, from.offset - skip, whole.count, whole.count};
    disks_[from.tier.index]->start(std::make_shared<DiskLeg>(*this, buffer, leg, move));
  } else {
    const DiskMove move{payload(buffer), to.offset, from.bytes.count, to.bytes.count};
    disks_[to.tier.index]->start(std::make_shared<DiskLeg>(*this, buffer, leg, move));
  }
}

void Relay::start_on_device(RelayBuffer& buffer, Access leg) {
  const Extent& there = leg == Access::read ? buffer.part.from : buffer.part.to;
  Tier& tier = *tiers_[there.tier.index];
  const std::uint64_t address = (tier.device()->address + there.offset).value;
  const auto here = reinterpret_cast<std::uint64_t>(payload(buffer));
  const std::uint64_t bytes = buffer.part.from.bytes.count;
  const DeviceCopy copy =
      leg == Access::read ? DeviceCopy{address, here, bytes} : DeviceCopy{here, address, bytes};
  devices_[there.tier.index]->start(
      std::make_shared<DeviceLeg>(*this, buffer, leg, tier, there.offset, copy));
}

void Relay::copy_memory(RelayBuffer& buffer, Access leg) noexcept {
  const Extent& there = leg == Access::read ? buffer.part.from : buffer.part.to;
  const Bytes bytes = buffer.part.from.bytes;
  Tier& tier = *tiers_[there.tier.index];
  bool complete = !buffer.job->ticket.failed();
  try {
    const auto started = std::chrono::steady_clock::now();
    std::byte* const memory = tier.memory() + there.offset;
    if (complete && leg == Access::read) stream_copy(payload(buffer), memory, bytes.count);
    if (complete && leg == Access::write) stream_copy(memory, payload(buffer), bytes.count);
    if (complete) {
      pace_at(tier, leg, bytes, Seconds(std::chrono::steady_clock::now() - started), there.offset);
    }
  } catch (...) {
    complete = false;
    buffer.job->ticket.fail(Failure::current());
  }
  leg_ended(buffer, leg, complete);
}

void Relay::leg_ended(RelayBuffer& buffer, Access leg, bool complete) noexcept {
  if (leg == Access::read && complete) return start_leg(buffer, Access::write);
  release(buffer, complete);
}

void Relay::release(RelayBuffer& buffer, bool complete) noexcept {
  const std::shared_ptr<RelayJob> job = std::exchange(buffer.job, nullptr);
  if (complete) job->links.count(job->link, buffer.part.from.bytes);
  std::unique_lock lock(mutex_);
  free_.push_back(&buffer);
  --job->buffers_in_use;
  job->incomplete = job->incomplete || !complete;
  if (!job->waiting) close_if_ended(*job);
  fill_buffers(lock);
}

void Relay::close_if_ended(RelayJob& job) {
  if (job.buffers_in_use > 0) return;
  job.close(!job.incomplete);
  if (--open_ == 0) ended_.notify_all();
}

}  // namespace terrace
