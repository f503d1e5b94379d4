#include "planners/autotm/fast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "planners/autotm/ascent.hpp"
#include "planners/autotm/cbc.hpp"
#include "planners/autotm/exchange.hpp"
#include "planners/autotm/placement.hpp"
#include "planners/autotm/program.hpp"
#include "planners/autotm/reduction.hpp"
#include "planners/autotm/saddle.hpp"

namespace terrace::autotm {
namespace {

/// Of the gap: what a bound may give away for fewer configurations.
constexpr double kSlack = 0.2;

/// From the prices to the truth. What is worth hardly more than its memory leaves first, to make room.
constexpr Trust kRound[] = {{1.1, 1}, {1, 0.5}, {1, 0}, {0, 0}};

/// Of a placement that follows shares of paths.
constexpr Trust kFollowed[] = {{1, 0}, {0, 0}};

/// Of the prices alone, to where shares of paths get further.
constexpr std::uint64_t kClimbSteps = 60;
/// Over what is proven: where a climb aims.
constexpr double kAim = 1.1;
/// From one placement to the next, of prices and shares.
constexpr std::uint64_t kLeastSteps = 100, kMostSteps = 300;
/// Of placements: what the relaxation says, the same with noise, by prices alone.
constexpr std::uint64_t kKinds = 3;
/// To improve a placement, beside some for every tensor.
constexpr std::uint64_t kLeastAttempts = 50;
/// For one region of the best placement that is made anew.
constexpr std::size_t kTensorsPerRegion = 100;
/// In the time of the steps from one look to the next: where there are moves beside kernels they take longer.
constexpr std::uint64_t kPlacementsBeside = 4, kOverlappingBeside = 2;
/// After which a small problem is left to the exact program: it takes as long as some thousand of them.
constexpr std::uint64_t kStepsAlone = 2000;
/// Edges and configurations, up to which a problem is small.
constexpr std::size_t kSmall = 10'000;
/// Of the gap: what the exact program is asked for. Of a bound: more than its tolerances.
constexpr double kAsked = 0.8, kTolerance = 1e-5;
/// At the clock, and at the bound.
constexpr std::uint64_t kStepsPerLook = 10;

class FastSolver {
 public:
  FastSolver(const Instance& instance, const FastOptions& options)
      : instance_(instance),
        options_(options),
        flat_(flatten(instance)),
        reduction_(flat_, kSlack * options.gap),
        placement_(flat_),
        exchange_(flat_, placement_),
        doubts_(flat_.tensors.size()),
        shares_(flat_.edges.size()),
        cuts_(reduction_.flat),
        ascent_(reduction_.flat),
        relaxation_(reduction_.flat, cuts_),
        best_prices_(reduction_.flat),
        prices_(flat_),
        random_(options.seed),
        start_(steady_clock().now()) {
    if (!instance.between.empty()) list_going_on();
    for (const Flat::Kernel& kernel : flat_.kernels) overlaps_ = overlaps_ || kernel.overlaps;
  }

  Result<FastResult> solve() {
    if (!placement_.is_complete() || placement_.is_overfull()) return no_start();
    keep();
    climb();
    Saddle saddle(reduction_.flat, cuts_, best_prices_);
    std::uint64_t steps = kLeastSteps;
    if (!is_done()) balance(saddle, steps, result_.time.count());
    while (!is_done()) {
      look_at(saddle);
      steps = std::min(steps + steps / 2, kMostSteps);
      // The first placement is often good enough.
      const bool alone = options_.threads == 1 || rounds_ == 0;
      alone ? place_then_balance(saddle, steps) : place_and_balance(saddle, steps);
      if (result_.iterations >= kStepsAlone && options_.branches && is_small()) branch();
    }
    result_.bound = bound();
    for (std::uint32_t m = 0; m < flat_.moments; ++m)
      result_.prices.push_back(best_prices_.memory[m] / flat_.unit);
    return std::move(result_);
  }

 private:
  bool is_late() const { return steady_clock().now() - start_ >= options_.time; }
  bool is_over() const { return result_.iterations >= options_.iterations || is_late(); }
  bool is_close(double time, double bound) const { return time <= bound * (1 + options_.gap); }
  Seconds bound() const { return Seconds{std::clamp(best_bound_, 0.0, result_.time.count())}; }

  bool is_done() {
    result_.bound = bound();
    result_.within_gap = result_.gap() <= options_.gap;
    return result_.within_gap || is_over();
  }

  void place_then_balance(Saddle& saddle, std::uint64_t steps) {
    place();
    if (!is_done()) balance(saddle, steps, result_.time.count());
  }

  /// Side by side: either knows of the other what there was when both began.
  void place_and_balance(Saddle& saddle, std::uint64_t steps) {
    const double time = result_.time.count(), bound = best_bound_;
    std::future<void> placing;
    try {
      placing = std::async(std::launch::async, [this, bound] { place_several(bound); });
    } catch (const std::system_error&) {  // no thread to be had: the same one after the other
      place_several(bound);
    }
    balance(saddle, steps, time);
    if (placing.valid()) placing.get();
  }

  /// Until one is good enough for this bound.
  void place_several(double bound) {
    for (std::uint64_t i = 0; i < (overlaps_ ? kOverlappingBeside : kPlacementsBeside) && !is_late(); ++i) {
      place();
      if (is_close(result_.time.count(), bound)) return;
    }
  }

  void place() {
    vary();
    rounds_ % kKinds == kKinds - 1 ? round() : follow();
    if (!is_late()) improve();
  }

  /// Towards a little more than what is proven: the first placement is far too slow to aim at.
  void climb() {
    for (std::uint64_t i = 1; i <= kClimbSteps; ++i) {
      const double aim = ascent_.bound() > 0 ? ascent_.bound() * kAim : result_.time.count();
      ascent_.step(std::min(aim, result_.time.count()));
      ++result_.iterations;
      if (i % kStepsPerLook == 0 && is_late()) break;
    }
    best_bound_ = ascent_.bound();
    best_prices_ = ascent_.prices();
  }

  /// Until the bound is good enough for a placement of this time.
  void balance(Saddle& saddle, std::uint64_t steps, double time) {
    if (result_.iterations > kClimbSteps && overlaps_) saddle.add_cuts();
    for (std::uint64_t i = 0; i < steps; ++i) {
      ++result_.iterations;
      if (!saddle.step()) continue;
      take_bound(saddle.prices());
      if (is_late() || is_close(time, best_bound_)) return;
    }
  }

  void take_bound(const Prices& prices) {
    const double bound = relaxation_.bound(prices);
    if (!(bound > best_bound_)) return;
    best_bound_ = bound;
    best_prices_ = prices;
  }

  /// Every other one asks for a fee and hopes for more than the prices promise: where these are undecided it
  /// leads elsewhere.
  void round() {
    const bool plain = rounds_++ % 2 == 0;
    const double hope = plain ? 0 : share(), fee = plain ? 0 : std::pow(share(), 3);
    for (Trust trust : kRound) {
      trust.hope = hope;
      trust.fee = fee * trust.memory;
      placement_.sweep(trust, random_);
      if (trust.link == 0) keep();
    }
  }

  /// Which tensors the relaxation is undecided about, and which paths it is for.
  void look_at(const Saddle& saddle) {
    std::fill(doubts_.begin(), doubts_.end(), 0.0);
    for (std::size_t t = 0; t < reduction_.tensors.size(); ++t)
      doubts_[reduction_.tensors[t]] = saddle.doubt(static_cast<std::uint32_t>(t));
    for (std::size_t e = 0; e < shares_.size(); ++e)
      shares_[e] = reduction_.edges[e] == kNone ? 0 : saddle.share(reduction_.edges[e]);
    for (const std::uint32_t e : going_on_) shares_[e] = 1;
    exchange_.set_doubts(doubts_);
    reduction_.widen(best_prices_, cuts_, prices_);
    placement_.set_prices(prices_);
  }

  /// So that placements differ.
  void vary() {
    noisy_ = shares_;
    if (rounds_ % kKinds == 0) return;
    const double noise = share();
    for (double& one : noisy_) one += noise * share();
  }

  bool is_small() const {
    return has_cbc() && options_.gap >= 2 * kTolerance &&
           flat_.edges.size() + flat_.configurations.size() <= kSmall;
  }

  /// Once.
  void branch() {
    if (std::exchange(branched_, true)) return;
    const Seconds left = options_.time - (steady_clock().now() - start_);
    if (is_done() || left.count() <= 0) return;
    auto solved = solve_program(instance_, Linking::tight, {kAsked * options_.gap, left});
    if (!solved) return;
    best_bound_ = std::max(best_bound_, solved->bound.count() * (1 - kTolerance));
    // Its capacities have tolerances, too.
    if (solved->objective >= result_.time || !is_within_capacities(instance_, solved->solution)) return;
    result_.solution = std::move(solved->solution);
    result_.time = solved->objective;
  }

  /// What takes memory of two pools is two edges where others are one: the second is to count for nothing.
  void list_going_on() {
    for (const Flat::Tensor& tensor : flat_.tensors) {
      std::vector<std::uint32_t> in(tensor.nodes), out(tensor.nodes);
      for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
        ++in[flat_.edges[e].to];
        ++out[flat_.edges[e].from];
      }
      for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
        const std::uint32_t node = flat_.edges[e].from;
        if (in[node] == 1 && out[node] == 1) going_on_.push_back(e);
      }
    }
  }

  /// Begins with the paths that the relaxation takes most of; those it is sure of come first.
  void follow() {
    ++rounds_;
    std::vector<std::uint32_t> order = reduction_.tensors;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return doubts_[a] < doubts_[b]; });
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::uint32_t t : order) placement_.follow(t, noisy_);
    }
    for (const Trust trust : kFollowed) {
      placement_.sweep(trust, random_);
      keep();
    }
  }

  /// The best placement; where moves are in each other's way also the latest, which may end better.
  void improve() {
    const std::uint64_t attempts = kLeastAttempts + flat_.tensors.size() / (overlaps_ ? 4 : 16);
    if (overlaps_) {
      exchange_.run(placement_, attempts, random_);
      keep();
    }
    best_->set_prices(prices_);
    exchange_.run(*best_, attempts, random_);
    exchange_.renew(*best_, shares_, flat_.tensors.size() / kTensorsPerRegion, random_);
    if (best_->time() < result_.time.count()) take(*best_);
  }

  double share() { return static_cast<double>(random_.below(1000)) / 1000; }

  void keep() {
    if (result_.time.count() > 0 && placement_.time() >= result_.time.count()) return;
    best_.emplace(placement_);
    take(placement_);
  }

  void take(const Placement& placement) {
    result_.solution = placement.solution();
    result_.time = step_time(instance_, result_.solution);
  }

  Error no_start() {
    const Shortage worst = placement_.shortage();
    const std::uint32_t pool = flat_.pool(worst.row);
    const std::int64_t given = flat_.capacity[pool];
    const std::string memory = pool == 0 ? "fast memory" : fmt::format("the memory between, pool {},", pool);
    if (worst.bytes > given) {
      return {ErrorCode::too_large,
              fmt::format("moment {} needs {} of {} at once and {} is given: give it more",
                          worst.row % flat_.moments, readable(Bytes{static_cast<std::uint64_t>(worst.bytes)}),
                          memory, readable(Bytes{static_cast<std::uint64_t>(given)}))};
    }
    return {ErrorCode::unsupported,
            fmt::format("no placement in {} of fast memory was found: give it more, or take the exact solver",
                        readable(instance_.capacity))};
  }

  const Instance& instance_;
  const FastOptions& options_;
  Flat flat_;
  Reduction reduction_;
  Placement placement_;
  std::optional<Placement> best_;
  Exchange exchange_;
  std::vector<double> doubts_;           ///< by tensor
  std::vector<double> shares_;           ///< by edge
  std::vector<double> noisy_;            ///< the same, as the next placement takes them
  std::vector<std::uint32_t> going_on_;  ///< edges
  Cuts cuts_;                            ///< of the smaller problem
  Ascent ascent_;
  Relaxation relaxation_;
  double best_bound_ = 0;
  Prices best_prices_;
  Prices prices_;  ///< the same for all links of the whole problem
  SplitMix random_;
  Clock::Time start_;
  FastResult result_;
  std::uint64_t rounds_ = 0;  ///< placements
  bool branched_ = false;
  bool overlaps_ = false;  ///< some move may be beside a kernel
};

}  // namespace

Result<FastResult> solve_fast(const Instance& instance, const FastOptions& options) {
  return FastSolver(instance, options).solve();
}

}  // namespace terrace::autotm
