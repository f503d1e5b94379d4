#include "planners/autotm/fast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "planners/autotm/ascent.hpp"
#include "planners/autotm/placement.hpp"

namespace terrace::autotm {
namespace {

/// Of the gap: what a bound may give away for fewer configurations.
constexpr double kSlack = 0.02;

/// From the prices to the truth. What is worth hardly more than its memory leaves first, to make room.
constexpr Trust kRound[] = {{1.1, 1}, {1, 1}, {1, 0.5}, {1, 0}, {0.9, 0}, {0, 0}};

/// Of the prices from one placement to the next.
constexpr std::uint64_t kFirstSteps = 30, kMostSteps = 300;
/// At the clock.
constexpr std::uint64_t kStepsPerLook = 10;

class FastSolver {
 public:
  FastSolver(const Instance& instance, const FastOptions& options)
      : instance_(instance),
        options_(options),
        flat_(flatten(instance, kSlack * options.gap)),
        placement_(flat_),
        ascent_(flat_),
        random_(options.seed),
        start_(steady_clock().now()) {}

  Result<FastResult> solve() {
    if (!placement_.is_complete() || placement_.is_overfull()) return no_start();
    keep();
    std::uint64_t steps = kFirstSteps;
    while (true) {
      climb(steps);
      round();
      result_.bound = Seconds{std::clamp(ascent_.bound(), 0.0, result_.time.count())};
      result_.within_gap = result_.gap() <= options_.gap;
      if (result_.within_gap || is_over()) break;
      steps = std::min(steps + steps / 2, kMostSteps);
    }
    for (const double price : ascent_.prices().memory) result_.prices.push_back(price / flat_.unit);
    return std::move(result_);
  }

 private:
  bool is_late() const { return steady_clock().now() - start_ >= options_.time; }
  bool is_over() const { return result_.iterations >= options_.iterations || is_late(); }

  void climb(std::uint64_t steps) {
    for (std::uint64_t i = 1; i <= steps; ++i) {
      ascent_.step(result_.time.count());
      ++result_.iterations;
      if (i % kStepsPerLook == 0 && is_late()) return;
    }
  }

  /// Every other one asks for a fee and hopes for more than the prices promise: where these are undecided it
  /// leads elsewhere.
  void round() {
    const bool plain = rounds_++ % 2 == 0;
    const double hope = plain ? 0 : share(), fee = plain ? 0 : std::pow(share(), 3);
    for (Trust trust : kRound) {
      trust.hope = hope;
      trust.fee = fee * trust.memory;
      placement_.sweep(ascent_.prices(), trust, random_);
      if (trust.link == 0) keep();
    }
  }

  double share() { return static_cast<double>(random_.below(1000)) / 1000; }

  void keep() {
    const double time = placement_.time();
    if (result_.time.count() > 0 && time >= result_.time.count()) return;
    result_.solution = placement_.solution();
    result_.time = step_time(instance_, result_.solution);
  }

  Error no_start() {
    const Shortage worst = placement_.shortage();
    if (worst.bytes > flat_.capacity) {
      return {ErrorCode::too_large,
              fmt::format("moment {} needs {} of fast memory at once and {} is given: give it more",
                          worst.moment, readable(Bytes{static_cast<std::uint64_t>(worst.bytes)}),
                          readable(instance_.capacity))};
    }
    return {ErrorCode::unsupported,
            fmt::format("no placement in {} of fast memory was found: give it more, or take the exact solver",
                        readable(instance_.capacity))};
  }

  const Instance& instance_;
  const FastOptions& options_;
  Flat flat_;
  Placement placement_;
  Ascent ascent_;
  SplitMix random_;
  Clock::Time start_;
  FastResult result_;
  std::uint64_t rounds_ = 0;
};

}  // namespace

Result<FastResult> solve_fast(const Instance& instance, const FastOptions& options) {
  return FastSolver(instance, options).solve();
}

}  // namespace terrace::autotm
