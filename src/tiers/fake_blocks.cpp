// SPDX-License-Identifier: Apache-2.0
#include "tiers/fake_blocks.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"

namespace terrace {
namespace {

std::uint64_t total(std::span<const Piece> pieces) {
  std::uint64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.bytes;
  return sum;
}

// Returns the bytes transferred, or -errno.
std::int64_t outcome(std::optional<FakeTier::Fault> fault, std::uint64_t asked, Bytes block) {
  if (!fault) return static_cast<std::int64_t>(asked);
  switch (*fault) {
    case FakeTier::Fault::io_error:
      return -EIO;
    case FakeTier::Fault::no_space:
      return -ENOSPC;
    case FakeTier::Fault::short_transfer:
      return static_cast<std::int64_t>(std::max(round_down(Bytes{asked / 2}, block), block).count);
    case FakeTier::Fault::no_progress:
      return 0;
  }
  return -EIO;
}

void transfer(const BlockRequest& request, std::byte* tier, std::uint64_t amount) {
  for (const Piece& piece : request.pieces) {
    const std::uint64_t part = std::min<std::uint64_t>(piece.bytes, amount);
    if (part == 0) return;
    if (request.access == Access::read) {
      std::memcpy(piece.memory, tier, part);
    } else {
      std::memcpy(tier, piece.memory, part);
    }
    tier += part;
    amount -= part;
  }
}

}  // namespace

void FakeQueue::require_valid(const BlockRequest& request) const {
  const std::uint64_t sum = total(request.pieces), block = block_.count;
  check(sum > 0, "a block request asks for something");
  check(request.offset % block == 0, "a block request starts at a multiple of block_size()");
  check(request.offset <= bytes_.size() && sum <= bytes_.size() - request.offset,
        "a block request lies inside the tier");
  for (const Piece& piece : request.pieces) {
    check(piece.memory != nullptr, "a piece has memory");
    check(piece.bytes % block == 0, "a piece's length is a multiple of block_size()");
    check(reinterpret_cast<std::uintptr_t>(piece.memory) % memory_alignment().count == 0,
          "a piece's address is a multiple of memory_alignment()");
  }
}

void FakeQueue::submit(const BlockRequest& request) {
  require_valid(request);
  const std::lock_guard lock(mutex_);
  check(in_flight_.size() < depth(), "fewer than depth() requests are in flight");
  const auto fate = script_.next(request.access);
  const auto ready = Clock::now() + std::chrono::duration_cast<Clock::duration>(fate.delay);
  in_flight_.push_back({request, fate.fault, ready});
  changed_.notify_all();
}

std::size_t FakeQueue::wait(std::span<BlockCompletion> completions) {
  check(!completions.empty(), "wait() has room for a completion");
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const std::size_t count = deliver(completions)) return count;
    if (std::exchange(woken_, false)) return 0;
    if (in_flight_.empty()) {
      changed_.wait(lock);
    } else {
      const auto first = std::min_element(in_flight_.begin(), in_flight_.end(),
                                          [](const auto& a, const auto& b) { return a.ready < b.ready; });
      const auto ready = first->ready;
      changed_.wait_until(lock, ready);
    }
  }
}

void FakeQueue::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

// Delivers some of the requests that are ready, in random order.
std::size_t FakeQueue::deliver(std::span<BlockCompletion> completions) {
  const auto now = Clock::now();
  std::shuffle(in_flight_.begin(), in_flight_.end(), shuffle_);
  const auto ready = std::partition(in_flight_.begin(), in_flight_.end(),
                                    [&](const InFlight& work) { return work.ready > now; });
  const std::size_t most = std::min<std::size_t>(completions.size(), in_flight_.end() - ready);
  const std::size_t count = most == 0 ? 0 : 1 + shuffle_() % most;
  for (std::size_t i = 0; i < count; ++i) {
    completions[i] = complete(in_flight_.back());
    in_flight_.pop_back();
  }
  return count;
}

BlockCompletion FakeQueue::complete(const InFlight& work) {
  const std::int64_t result = outcome(work.fault, total(work.request.pieces), block_);
  if (result > 0) {
    const std::lock_guard lock(shared_);
    transfer(work.request, bytes_.data() + work.request.offset, static_cast<std::uint64_t>(result));
  }
  return {work.request.tag, result};
}

}  // namespace terrace
