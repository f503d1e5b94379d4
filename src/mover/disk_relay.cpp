#include "mover/ferry.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

// A Leg reads or writes one carrier on one disk.
class Ferry::Leg final : public DiskTask {
 public:
  Leg(Ferry& ferry, Carrier& carrier, Access access, const DiskMove& move)
      : DiskTask(carrier.job->ticket, access, nullptr, {move}), ferry_(ferry), carrier_(carrier) {}

  void moved(Bytes) noexcept override {}
  void finished(bool complete) noexcept override { ferry_.landed(carrier_, access(), complete); }

 private:
  Ferry& ferry_;
  Carrier& carrier_;
};

Ferry::Ferry(const std::vector<std::unique_ptr<BlockEngine>>& engines, std::vector<Tier*> tiers,
             std::span<std::byte> memory, std::size_t carrier_bytes)
    : engines_(engines),
      tiers_(std::move(tiers)),
      carrier_bytes_(carrier_bytes),
      carriers_(memory.size() / carrier_bytes) {
  for (std::size_t i = 0; i < carriers_.size(); ++i) {
    carriers_[i].memory = memory.data() + i * carrier_bytes;
    free_.push_back(&carriers_[i]);
  }
}

void Ferry::start(std::shared_ptr<FerryJob> job) {
  std::unique_lock lock(mutex_);
  job->waiting = true;
  waiting_.push_back(std::move(job));
  ++open_;
  load(lock);
}

void Ferry::drain() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return open_ == 0; });
}

// Starts reads into free carriers while jobs have bytes left.
void Ferry::load(std::unique_lock<std::mutex>& lock) {
  while (!free_.empty() && !waiting_.empty()) {
    const std::shared_ptr<FerryJob> job = best_job();
    if (job->ticket.failed()) {
      job->incomplete = true;
      drop(job);
      continue;
    }
    Carrier& carrier = *free_.back();
    free_.pop_back();
    carrier.job = job;
    ++job->carriers;
    cut(*job, carrier);
    if (job->next_move == job->moves.size()) drop(job);
    lock.unlock();
    send(carrier, Access::read);
    lock.lock();
  }
}

std::shared_ptr<FerryJob> Ferry::best_job() {
  return *std::max_element(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) {
    return a->ticket.priority() < b->ticket.priority();
  });
}

void Ferry::drop(const std::shared_ptr<FerryJob>& job) {
  waiting_.remove(job);
  job->waiting = false;
  close_if_ended(*job);
}

// Cuts the next part of the job: as much as fits into the carrier when read in whole blocks. It ends at a
// block boundary of the destination where it can, so that no block there is written twice.
void Ferry::cut(FerryJob& job, Carrier& carrier) {
  const Move& move = job.moves[job.next_move];
  const std::uint64_t position = job.next_position;
  const std::uint64_t from = move.from.offset + position, to = move.to.offset + position;
  const std::uint64_t left = move.from.bytes.count - position;
  std::uint64_t bytes = std::min<std::uint64_t>(left, carrier_bytes_ - from % block(move.from.tier));
  if (bytes < left) bytes -= (to + bytes) % block(move.to.tier);
  const bool last = bytes == left;
  const Bytes room = last ? move.to.bytes - Bytes{position} : Bytes{bytes};
  carrier.part = {{move.from.tier, from, {bytes}}, {move.to.tier, to, room}};
  job.next_position = last ? 0 : position + bytes;
  job.next_move += last ? 1 : 0;
}

void Ferry::send(Carrier& carrier, Access leg) noexcept {
  const Extent& from = carrier.part.from;
  const Extent& to = carrier.part.to;
  const std::uint64_t skip = from.offset % block(from.tier);
  try {
    if (leg == Access::read) {
      const Bytes whole = round_up(from.bytes + Bytes{skip}, Bytes{block(from.tier)});
      const DiskMove move{carrier.memory, from.offset - skip, whole.count, whole.count};
      engines_[from.tier.index]->start(std::make_shared<Leg>(*this, carrier, leg, move));
    } else {
      const DiskMove move{carrier.memory + skip, to.offset, from.bytes.count, to.bytes.count};
      engines_[to.tier.index]->start(std::make_shared<Leg>(*this, carrier, leg, move));
    }
  } catch (...) {
    carrier.job->ticket.fail(Failure::current());
    unload(carrier, false);
  }
}

void Ferry::landed(Carrier& carrier, Access leg, bool complete) noexcept {
  if (leg == Access::read && complete) return send(carrier, Access::write);
  unload(carrier, complete);
}

void Ferry::unload(Carrier& carrier, bool complete) noexcept {
  const std::shared_ptr<FerryJob> job = std::exchange(carrier.job, nullptr);
  if (complete) job->links.count(job->link, carrier.part.from.bytes);
  std::unique_lock lock(mutex_);
  free_.push_back(&carrier);
  --job->carriers;
  job->incomplete = job->incomplete || !complete;
  if (!job->waiting) close_if_ended(*job);
  load(lock);
}

void Ferry::close_if_ended(FerryJob& job) {
  if (job.carriers > 0) return;
  job.close(!job.incomplete);
  if (--open_ == 0) ended_.notify_all();
}

}  // namespace terrace
