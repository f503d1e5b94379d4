#include "mover/disk_relay.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

// A Leg reads or writes one buffer on one disk.
class DiskRelay::Leg final : public DiskTask {
 public:
  Leg(DiskRelay& relay, RelayBuffer& buffer, Access access, const DiskMove& move)
      : DiskTask(buffer.job->ticket, access, nullptr, {move}), relay_(relay), buffer_(buffer) {}

  void moved(Bytes) noexcept override {}
  void finished(bool complete) noexcept override { relay_.leg_ended(buffer_, access(), complete); }

 private:
  DiskRelay& relay_;
  RelayBuffer& buffer_;
};

DiskRelay::DiskRelay(const std::vector<std::unique_ptr<BlockEngine>>& engines, std::vector<Tier*> tiers,
                     std::span<std::byte> memory, std::size_t buffer_bytes)
    : engines_(engines),
      tiers_(std::move(tiers)),
      buffer_bytes_(buffer_bytes),
      buffers_(memory.size() / buffer_bytes) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].memory = memory.data() + i * buffer_bytes;
    free_.push_back(&buffers_[i]);
  }
}

void DiskRelay::start(std::shared_ptr<RelayJob> job) {
  std::unique_lock lock(mutex_);
  job->waiting = true;
  waiting_.push_back(std::move(job));
  ++open_;
  fill_buffers(lock);
}

void DiskRelay::drain() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return open_ == 0; });
}

// Starts reads into free buffers while jobs have bytes left.
void DiskRelay::fill_buffers(std::unique_lock<std::mutex>& lock) {
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

std::shared_ptr<RelayJob> DiskRelay::best_job() {
  return *std::max_element(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) {
    return a->ticket.priority() < b->ticket.priority();
  });
}

void DiskRelay::drop(const std::shared_ptr<RelayJob>& job) {
  waiting_.remove(job);
  job->waiting = false;
  close_if_ended(*job);
}

// Cuts the next part of the job: as much as fits into the buffer when read in whole blocks. It ends at a
// block boundary of the destination where it can, so that no block there is written twice.
void DiskRelay::cut(RelayJob& job, RelayBuffer& buffer) {
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

void DiskRelay::start_leg(RelayBuffer& buffer, Access leg) noexcept {
  const Extent& from = buffer.part.from;
  const Extent& to = buffer.part.to;
  const std::uint64_t skip = from.offset % block(from.tier);
  try {
    if (leg == Access::read) {
      const Bytes whole = round_up(from.bytes + Bytes{skip}, Bytes{block(from.tier)});
      const DiskMove move{buffer.memory, from.offset - skip, whole.count, whole.count};
      engines_[from.tier.index]->start(std::make_shared<Leg>(*this, buffer, leg, move));
    } else {
      const DiskMove move{buffer.memory + skip, to.offset, from.bytes.count, to.bytes.count};
      engines_[to.tier.index]->start(std::make_shared<Leg>(*this, buffer, leg, move));
    }
  } catch (...) {
    buffer.job->ticket.fail(Failure::current());
    release(buffer, false);
  }
}

void DiskRelay::leg_ended(RelayBuffer& buffer, Access leg, bool complete) noexcept {
  if (leg == Access::read && complete) return start_leg(buffer, Access::write);
  release(buffer, complete);
}

void DiskRelay::release(RelayBuffer& buffer, bool complete) noexcept {
  const std::shared_ptr<RelayJob> job = std::exchange(buffer.job, nullptr);
  if (complete) job->links.count(job->link, buffer.part.from.bytes);
  std::unique_lock lock(mutex_);
  free_.push_back(&buffer);
  --job->buffers_in_use;
  job->incomplete = job->incomplete || !complete;
  if (!job->waiting) close_if_ended(*job);
  fill_buffers(lock);
}

void DiskRelay::close_if_ended(RelayJob& job) {
  if (job.buffers_in_use > 0) return;
  job.close(!job.incomplete);
  if (--open_ == 0) ended_.notify_all();
}

}  // namespace terrace
