// SPDX-License-Identifier: Apache-2.0
#include "terrace/mover.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "mover/engines.hpp"

namespace terrace {

/// The state owns a transfer's jobs; the engines share its ownership while they work on them.
struct Transfer::State {
  State(std::shared_ptr<Engines> the_engines, Priority priority, std::size_t jobs)
      : engines(std::move(the_engines)), ticket(priority, jobs) {
    copies.reserve(jobs);
    disks.reserve(jobs);
    relay_jobs.reserve(jobs);
    device_jobs.reserve(jobs);
  }

  std::shared_ptr<Engines> engines;
  Ticket ticket;
  std::vector<CopyJob> copies;
  std::vector<DiskJob> disks;
  std::vector<RelayJob> relay_jobs;
  std::vector<DeviceJob> device_jobs;
};

namespace {

struct LinkMoves {
  LinkEnds link;
  std::vector<Move> moves;
};

void check_extent(const std::vector<Tier*>& tiers, const Extent& extent) {
  check(extent.tier.index < tiers.size(), "the mover knows the tier of a move");
  const std::uint64_t capacity = tiers[extent.tier.index]->description().capacity.count;
  check(extent.offset <= capacity && extent.bytes.count <= capacity - extent.offset,
        "an extent of a move lies inside its tier");
}

bool overlap(const Extent& a, const Extent& b) {
  return a.tier == b.tier && a.offset < b.offset + b.bytes.count && b.offset < a.offset + a.bytes.count;
}

void check_move(const std::vector<Tier*>& tiers, const Move& move) {
  check_extent(tiers, move.from);
  check_extent(tiers, move.to);
  check(move.to.bytes >= move.from.bytes, "the destination of a move has room for it");
  check(move.from.bytes.count == 0 || !overlap(move.from, move.to), "the extents of a move do not overlap");
}

std::vector<LinkMoves> by_link(std::vector<Move> moves) {
  std::vector<LinkMoves> links;
  for (const Move& move : moves) {
    if (move.from.bytes.count == 0) continue;
    const LinkEnds link{move.from.tier, move.to.tier};
    auto found =
        std::find_if(links.begin(), links.end(), [&](const auto& known) { return known.link == link; });
    if (found == links.end()) found = links.insert(links.end(), LinkMoves{link, {}});
    found->moves.push_back(move);
  }
  return links;
}

std::vector<DiskMove> disk_moves(const std::vector<Move>& moves, Access access, std::byte* memory) {
  std::vector<DiskMove> result;
  result.reserve(moves.size());
  for (const Move& move : moves) {
    const Extent& disk = access == Access::read ? move.from : move.to;
    const Extent& other = access == Access::read ? move.to : move.from;
    result.push_back({memory + other.offset, disk.offset, move.from.bytes.count, move.to.bytes.count});
  }
  return result;
}

// Whether a device's own queues can carry all of the moves.
bool device_alone(Engines& engines, const LinkMoves& part) {
  const bool out = engines.tier(part.link.from).device() != nullptr;
  if (!out && engines.tier(part.link.to).device() == nullptr) return false;
  return std::all_of(part.moves.begin(), part.moves.end(), [&](const Move& move) {
    if (out) return engines.reaches(part.link.from, {move.to.tier, move.to.offset, move.from.bytes});
    return engines.reaches(part.link.to, move.from);
  });
}

void add_device_job(Transfer::State& state, const LinkMoves& part) {
  Engines& engines = *state.engines;
  Tier& from = engines.tier(part.link.from);
  Tier& to = engines.tier(part.link.to);
  const Direction direction = direction_between(from, to);
  std::vector<DeviceCopy> copies;
  copies.reserve(part.moves.size());
  for (const Move& move : part.moves) {
    copies.push_back(
        {address_in(from, move.from.offset), address_in(to, move.to.offset), move.from.bytes.count});
  }
  const Move& first = part.moves.front();
  const bool in = direction == Direction::in;
  state.device_jobs.emplace_back(state.ticket, part.link, engines.links(), direction, in ? to : from,
                                 in ? first.to.offset : first.from.offset, std::move(copies));
}

void add_job(Transfer::State& state, LinkMoves part) {
  Engines& engines = *state.engines;
  Tier& from = engines.tier(part.link.from);
  Tier& to = engines.tier(part.link.to);
  const bool on_device = from.device() != nullptr || to.device() != nullptr;
  if (device_alone(engines, part)) {
    add_device_job(state, part);
  } else if (on_device) {
    state.relay_jobs.emplace_back(state.ticket, part.link, engines.links()).moves = std::move(part.moves);
  } else if (from.memory() != nullptr && to.memory() != nullptr) {
    state.copies.emplace_back(state.ticket, part.link, engines.links()).moves = std::move(part.moves);
  } else if (from.memory() == nullptr && to.memory() == nullptr) {
    state.relay_jobs.emplace_back(state.ticket, part.link, engines.links()).moves = std::move(part.moves);
  } else {
    const Access access = from.memory() == nullptr ? Access::read : Access::write;
    Tier& memory = access == Access::read ? to : from;
    state.disks.emplace_back(state.ticket, part.link, engines.links(), access, memory,
                             disk_moves(part.moves, access, memory.memory()));
  }
}

void start_jobs(const std::shared_ptr<Transfer::State>& state) {
  Engines& engines = *state->engines;
  for (CopyJob& job : state->copies) engines.memory().start({state, &job});
  for (DiskJob& job : state->disks) {
    engines.blocks(job.access() == Access::read ? job.link.from : job.link.to).start({state, &job});
  }
  for (RelayJob& job : state->relay_jobs) engines.relay().start({state, &job});
  for (DeviceJob& job : state->device_jobs) {
    const bool out = engines.tier(job.link.from).device() != nullptr;
    engines.device(out ? job.link.from : job.link.to).start({state, &job});
  }
}

// Waits until the transfer has ended, whatever its outcome.
void see_through(Transfer::State& state) {
  if (state.ticket.done()) return;
  state.ticket.raise();
  state.engines->raise();
  for (CopyJob& job : state.copies) state.engines->memory().raise(job);
  if (!state.copies.empty()) state.engines->memory().help(state.copies);
  state.ticket.wait();
}

}  // namespace

bool Transfer::done() const noexcept { return state_ == nullptr || state_->ticket.done(); }

std::chrono::steady_clock::time_point Transfer::ended() const noexcept { return state_->ticket.ended_at(); }

void Transfer::wait() {
  if (state_ == nullptr) return;
  see_through(*state_);
  state_->ticket.require_success();
}

Transfer::~Transfer() {
  if (state_ != nullptr) see_through(*state_);
}

Transfer& Transfer::operator=(Transfer&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) see_through(*state_);
  state_ = std::move(other.state_);
  return *this;
}

struct Mover::Impl {
  Impl(std::vector<Tier*> the_tiers, const MoverOptions& options)
      : tiers(std::move(the_tiers)), rehearsed(tiers.size()) {
    if (!options.rehearsal) engines = std::make_shared<Engines>(tiers, options);
  }
  LinkTable& links() { return engines ? engines->links() : rehearsed; }
  Transfer rehearse(const std::vector<LinkMoves>& parts);

  const std::vector<Tier*> tiers;
  LinkTable rehearsed;
  std::shared_ptr<Engines> engines;  ///< nullptr in a rehearsal
};

Transfer Mover::Impl::rehearse(const std::vector<LinkMoves>& parts) {
  for (const LinkMoves& part : parts) {
    rehearsed.open(part.link);
    for (const Move& move : part.moves) rehearsed.count(part.link, move.from.bytes);
    rehearsed.close(part.link, true);
  }
  return {};
}

Mover::Mover(std::vector<Tier*> tiers, MoverOptions options)
    : impl_(std::make_unique<Impl>(std::move(tiers), options)) {}

Mover::~Mover() {
  if (impl_->engines) impl_->engines->stop();
}

Transfer Mover::start(std::vector<Move> moves, Priority priority) {
  const std::shared_ptr<Engines>& engines = impl_->engines;
  for (const Move& move : moves) check_move(impl_->tiers, move);
  std::vector<LinkMoves> links = by_link(std::move(moves));
  if (!engines) return impl_->rehearse(links);
  auto state = std::make_shared<Transfer::State>(engines, priority, links.size());
  for (LinkMoves& part : links) add_job(*state, std::move(part));
  for (const LinkMoves& part : links) engines->links().open(part.link);
  start_jobs(state);
  return Transfer(std::move(state));
}

void Mover::move(std::vector<Move> moves) { start(std::move(moves), Priority::urgent).wait(); }

LinkStatistics Mover::statistics(TierId from, TierId to) const {
  check(from.index < impl_->tiers.size() && to.index < impl_->tiers.size(), "the mover knows the tiers");
  return impl_->links().statistics({from, to});
}

Bytes Mover::bounce_bytes() const noexcept { return rehearsal() ? Bytes{} : impl_->engines->bounce_bytes(); }

unsigned copy_helpers(const std::vector<Tier*>& tiers) {
  unsigned most = 0;
  for (const Tier* tier : tiers) most = std::max(most, tier->description().spec.threads);
  return most > 0 ? most : MoverOptions{}.helpers;
}

unsigned Mover::helpers() const noexcept { return rehearsal() ? 0 : impl_->engines->memory().helpers(); }

bool Mover::rehearsal() const noexcept { return impl_->engines == nullptr; }

}  // namespace terrace
