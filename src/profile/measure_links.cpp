// SPDX-License-Identifier: Apache-2.0
#include "profile/measure_links.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <thread>

#include "base/check.hpp"
#include "base/random.hpp"
#include "math/loops.hpp"

namespace terrace {
namespace {

using namespace literals;
using Clock = std::chrono::steady_clock;

/// Far larger than the caches near the cores.
constexpr std::size_t kOperand = (64_MiB).count / sizeof(float);
/// On every element: with reading and writing it, 16 operations a byte.
constexpr int kMultiplyAdds = 64;
constexpr Bytes kFilling = 4_MiB;

/// Moves of one size that walk through a part of two tiers, so that caches do not help.
class Walk {
 public:
  Walk(TierId from, TierId to, Bytes size, std::uint64_t begin, Bytes part)
      : from_(from), to_(to), size_(size), begin_(begin), places_(part / size) {
    check(places_ > 0, "a transfer fits into half of the area");
  }

  Move next() {
    const std::uint64_t offset = begin_ + count_++ % places_ * size_.count;
    return {{from_, offset, size_}, {to_, offset, size_}};
  }

 private:
  TierId from_, to_;
  Bytes size_;
  std::uint64_t begin_, places_, count_ = 0;
};

/// Calls `work` for at least `round`; how long one call takes.
template <class Work>
Seconds repeat(Seconds round, Work work) {
  const auto start = Clock::now();
  Seconds took{0};
  for (double calls = 1;; ++calls) {
    work();
    took = Clock::now() - start;
    if (took >= round) return took / calls;
  }
}

Seconds move_for(Mover& mover, Walk& walk, Seconds round) {
  return repeat(round, [&] { mover.move({walk.next()}); });
}

/// Does something on a thread of its own while it lives.
class Meanwhile {
 public:
  /// `step` is called again and again; the first call has ended before this returns.
  template <class Step>
  explicit Meanwhile(Step step) {
    std::promise<void> first;
    auto begun = first.get_future();
    work_ = std::async(std::launch::async, [this, step, first = std::move(first)]() mutable {
      try {
        step();
        first.set_value();
      } catch (...) {
        first.set_exception(std::current_exception());
        return;
      }
      while (!stop_) step();
    });
    begun.get();
  }
  ~Meanwhile() { stop_ = true; }

  /// Ends it; throws what it met.
  void end() {
    stop_ = true;
    work_.get();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::future<void> work_;  ///< last: its end is waited for first
};

/// Several transfers in the background at any time, as beside a step: nobody waits for one, nobody helps, and
/// the link has work though the thread that starts them gets its turn late.
class Background {
 public:
  Background(Mover& mover, Walk walk) : mover_(&mover), walk_(walk) {}

  void operator()() {
    while (under_way_.size() < kInFlight) under_way_.push_back(mover_->start({walk_.next()}));
    while (!under_way_.front().done()) std::this_thread::sleep_for(std::chrono::microseconds(100));
    under_way_.front().wait();
    under_way_.pop_front();
    ++count_;
  }
  /// Transfers that have ended.
  std::uint64_t count() const { return count_; }

 private:
  Mover* mover_;
  Walk walk_;
  static constexpr std::size_t kInFlight = 8;
  std::deque<Transfer> under_way_;
  std::atomic<std::uint64_t> count_ = 0;
};

/// Transfers a second while `work` is done again and again.
template <class Work>
double transfers_while(const Background& background, Seconds round, Work work, Seconds& each) {
  // So many transfers are enough for a rate. A slow link is given up after as many rounds, and after many
  // more if no transfer has ended, as happens where other programs take all processors.
  constexpr std::uint64_t kEnough = 20, kMost = 2000;
  const std::uint64_t before = background.count();
  const auto start = Clock::now();
  Seconds sum{0};
  std::uint64_t rounds = 0;
  do {
    sum += repeat(round, work);
    ++rounds;
  } while (background.count() - before < kEnough && rounds < (background.count() > before ? kEnough : kMost));
  each = sum / static_cast<double>(rounds);
  return static_cast<double>(background.count() - before) / Seconds(Clock::now() - start).count();
}

void compute_pass(std::vector<float>& operand) {
  float* const x = operand.data();
  math::for_elements(static_cast<std::int64_t>(operand.size()), [=](std::int64_t i) {
    float value = x[i];
#pragma GCC unroll 64
    for (int step = 0; step < kMultiplyAdds; ++step) value = value * 0.5F + 0.5F;
    x[i] = value;
  });
}

}  // namespace

LinkBench::LinkBench(std::vector<Tier*> tiers, Bytes area)
    : tiers_(std::move(tiers)),
      half_(area / 2),
      operand_(kOperand, 1.0F),
      mover_(tiers_, {.helpers = copy_helpers(tiers_)}) {
  fill(area);
}

/// Fills the tiers with bytes that no disk can compress.
void LinkBench::fill(Bytes area) {
  auto* const words = reinterpret_cast<std::uint64_t*>(tiers_[0]->memory());
  SplitMix random(1);
  std::generate_n(words, area.count / sizeof(std::uint64_t), [&] { return random.next(); });
  for (std::uint32_t tier = 1; tier < tiers_.size(); ++tier) {
    const Bytes size = std::min(kFilling, area);
    Walk walk(TierId{0}, TierId{tier}, size, 0, area);
    for (std::uint64_t i = 0; i < area / size; ++i) mover_.move({walk.next()});
  }
}

Seconds LinkBench::transfer(TierId from, TierId to, Bytes size, Seconds round) {
  Walk walk(from, to, size, 0, half_);
  return move_for(mover_, walk, round);
}

double LinkBench::both_ways(TierId from, TierId to, Bytes size, Seconds round) {
  Walk walk(from, to, size, 0, half_);
  const Seconds alone = move_for(mover_, walk, round);
  Walk opposite(to, from, size, half_.count, half_);
  Meanwhile back([this, opposite]() mutable { mover_.move({opposite.next()}); });
  const Seconds both = move_for(mover_, walk, round);
  back.end();
  return alone / both;
}

LinkBench::Copying LinkBench::beside_compute(Mover& mover, TierId from, TierId to, Bytes size,
                                             Seconds round) {
  const auto compute = [this] { compute_pass(operand_); };
  const Seconds alone = repeat(round, compute);
  // Shared, for a step is copied and a transfer cannot be.
  const auto background = std::make_shared<Background>(mover, Walk(from, to, size, 0, half_));
  Meanwhile copying([background] { (*background)(); });
  Seconds idle{0}, beside{0};
  const double free = transfers_while(
      *background, round, [round] { std::this_thread::sleep_for(round); }, idle);
  const double shared = transfers_while(*background, round, compute, beside);
  copying.end();
  return {{free * static_cast<double>(size.count)}, {alone / beside, free > 0 ? shared / free : 1}};
}

LinkBench::Shares LinkBench::beside_compute(TierId from, TierId to, Bytes size, Seconds round) {
  return beside_compute(mover_, from, to, size, round).beside;
}

LinkBench::Copying LinkBench::with_threads(unsigned threads, TierId from, TierId to, Bytes size,
                                           Seconds round) {
  check(!thread_counts(*tiers_[from.index], *tiers_[to.index]).empty(), "threads copy between memories");
  // The mover has these two tiers alone, because a disk's queue has one mover.
  Mover mover({tiers_[from.index], tiers_[to.index]}, {.helpers = threads});
  return beside_compute(mover, TierId{0}, TierId{1}, size, round);
}

std::vector<unsigned> thread_counts(Tier& from, Tier& to) {
  if (from.blocks() != nullptr || to.blocks() != nullptr) return {};
  std::vector<unsigned> counts;
  const unsigned most = to.description().write_threads;
  for (unsigned count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

unsigned LinkBench::threads(TierId from, TierId to) const {
  for (const TierId end : {from, to}) {
    Tier& tier = *tiers_[end.index];
    if (tier.blocks() != nullptr) return tier.description().write_threads;
  }
  return std::min(mover_.helpers(), tiers_[to.index]->description().write_threads);
}

}  // namespace terrace
