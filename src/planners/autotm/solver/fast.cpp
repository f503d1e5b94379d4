// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/fast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "optim/cbc.hpp"
#include "planners/autotm/model/program.hpp"
#include "planners/autotm/solver/exchange.hpp"
#include "planners/autotm/solver/placement.hpp"
#include "planners/autotm/solver/stage.hpp"

namespace terrace::autotm {
namespace {

/// The gap of the first stage, if a smaller one is asked for.
constexpr double kCoarseGap = 0.01;
/// A coarse stage goes on while it proves this share of what it gives away from one look to the next.
constexpr double kLeastRise = 0.05;

/// Sweeps go from the multipliers to true costs. What is worth hardly more than its memory leaves first, to
/// make room.
constexpr Trust kRound[] = {{1.1, 1}, {1, 0.5}, {1, 0}, {0, 0}};

/// The sweeps of a placement that follows shares of paths.
constexpr Trust kFollowed[] = {{1, 0}, {0, 0}};

/// How many primal-dual steps lie between two placements.
constexpr std::uint64_t kLeastSteps = 100, kMostSteps = 300;
/// The kinds of placements: what the relaxation says, the same with noise, by multipliers alone; where no
/// move is beside a kernel, also one with as much in fast memory as fits.
constexpr std::uint64_t kKinds = 3, kFilled = 3;
/// The least share of an edge that may be taken though the relaxation takes more of others.
constexpr double kLeastShare = 0.01;
/// How many exchanges a placement gets at least, beside some for every tensor.
constexpr std::uint64_t kLeastAttempts = 50;
/// One region of the best placement is made anew for so many tensors.
constexpr std::size_t kTensorsPerRegion = 100;
/// How many placements are made beside the steps from one look to the next: with moves beside kernels they
/// take longer.
constexpr std::uint64_t kPlacementsBeside = 4, kOverlappingBeside = 2;
/// After so many steps a small problem is left to the exact program, which takes as long as some thousand of
/// them.
constexpr std::uint64_t kStepsAlone = 2000;
/// Up to so many edges and configurations a problem is small.
constexpr std::size_t kSmall = 10'000;
/// The share of the gap that the exact program is asked for, and how much of its bound is taken off for its
/// tolerances.
constexpr double kAsked = 0.8, kTolerance = 1e-5;
/// How many nodes the exact program may branch into for a small problem.
constexpr std::uint64_t kBranches = 5'000;

class FastSolver {
 public:
  FastSolver(const Instance& instance, const FastOptions& options)
      : instance_(instance),
        options_(options),
        team_(options.threads),
        flat_(flatten(instance)),
        overlaps_(flat_.overlaps()),
        placement_(start()),
        exchange_(flat_, placement_),
        fractionality_(flat_.tensors.size()),
        shares_(flat_.edges.size()),
        multipliers_(flat_),
        random_(options.seed) {
    // What takes memory of two pools is two edges where others are one: the second is to count for nothing.
    if (!instance.between.empty()) going_on_ = flat_.going_on();
  }

  Result<FastResult> solve() {
    if (!placement_.is_complete() || placement_.is_overfull()) return no_start();
    keep();
    result_.iterations += stage_->climb(result_.time, options_.stop);
    std::uint64_t steps = kLeastSteps;
    if (!is_done()) balance(steps, result_.time);
    while (!is_done()) {
      refine();
      look();
      steps = std::min(steps + steps / 2, kMostSteps);
      // The first placement is often good enough.
      const bool alone = options_.threads == 1 || rounds_ == 0;
      alone ? place_then_balance(steps) : place_and_balance(steps);
      if (result_.iterations >= kStepsAlone && options_.branches && is_small()) branch();
    }
    result_.bound = bound();
    for (std::uint32_t m = 0; m < flat_.moments; ++m)
      result_.multipliers.push_back(stage_->multipliers().memory[m] / flat_.unit);
    return std::move(result_);
  }

 private:
  /// Makes the first placement, and beside it the first stage.
  Placement start() {
    std::optional<Placement> made;
    const double gap = overlaps_ ? std::max(options_.gap, kCoarseGap) : options_.gap;
    team_.both([&] { stage_ = std::make_unique<Stage>(flat_, gap, team_); }, [&] { made.emplace(flat_); });
    return *std::move(made);
  }

  bool is_late() const { return options_.stop.stop_requested(); }
  bool is_over() const {
    const auto done = static_cast<double>(result_.iterations);
    return result_.iterations >= options_.iterations || done * size() >= options_.work || is_late();
  }
  double size() const { return static_cast<double>(flat_.edges.size() + flat_.configurations.size()); }
  Seconds bound() const {
    return Seconds{std::clamp(std::max(branched_, stage_->bound()), 0.0, result_.time.count())};
  }

  bool is_done() {
    result_.bound = bound();
    result_.within_gap = result_.gap() <= options_.gap;
    return result_.within_gap || is_over();
  }

  /// Takes steps until the bound is good enough for a placement of this time.
  void balance(std::uint64_t steps, Seconds time) {
    const double before = stage_->bound();
    result_.iterations += stage_->balance(steps, time.count() / (1 + options_.gap), options_.stop);
    rise_ = stage_->bound() - before;
  }

  void place_then_balance(std::uint64_t steps) {
    place(stage_->bound());
    if (is_done()) return;
    refine();
    balance(steps, result_.time);
  }

  /// Makes placements and takes steps side by side; each knows of the other only what there was at the start.
  void place_and_balance(std::uint64_t steps) {
    const Seconds time = result_.time;
    const double bound = stage_->bound();
    team_.both([&] { balance(steps, time); }, [&] { place_several(bound); });
  }

  /// Makes placements until one is good enough for this bound.
  void place_several(double bound) {
    for (std::uint64_t i = 0; i < (overlaps_ ? kOverlappingBeside : kPlacementsBeside) && !is_late(); ++i) {
      place(bound);
      if (is_enough(bound)) return;
    }
  }

  bool is_enough(double bound) const { return result_.time.count() <= bound * (1 + options_.gap); }

  /// Makes one placement, and improves it unless it is good enough for this bound.
  void place(double bound) {
    vary();
    switch (rounds_ % kinds()) {
      case kKinds - 1:
        round();
        break;
      case kFilled:
        fill();
        break;
      default:
        follow(bound);
    }
    ++rounds_;
    if (!is_late() && !is_enough(bound)) improve();
  }

  /// A coarse stage ends where it has proved its gap, or proves little beside what it gives away.
  void refine() {
    if (stage_->gap() <= options_.gap) return;
    if (result_.gap() > stage_->gap() && rise_ > kLeastRise * stage_->given_away()) return;
    stage_ = std::make_unique<Stage>(flat_, options_.gap, *stage_);
    rounds_ += (kinds() - rounds_ % kinds()) % kinds();  // what the new shares say comes first
  }

  std::uint64_t kinds() const { return overlaps_ ? kKinds : kFilled + 1; }

  /// Every other one asks for a fee and hopes for more than the multipliers promise: where these are
  /// undecided it leads elsewhere.
  void round() {
    const bool plain = rounds_ / kinds() % 2 == 0;
    const double hope = plain ? 0 : share(), fee = plain ? 0 : std::pow(share(), 3);
    for (Trust trust : kRound) {
      trust.hope = hope;
      trust.fee = fee * trust.memory;
      placement_.sweep(trust, random_);
      if (trust.link == 0) keep();
    }
  }

  /// Looks at which tensors the relaxation is undecided about and which paths it prefers.
  void look() {
    stage_->show(fractionality_, shares_, multipliers_);
    for (const std::uint32_t e : going_on_) shares_[e] = 1;
    exchange_.set_fractionality(fractionality_);
    placement_.set_multipliers(multipliers_);
  }

  /// Adds noise to the shares, so that placements differ.
  void vary() {
    noisy_ = shares_;
    if (rounds_ % kinds() == 0) return;
    const double noise = share();
    for (double& one : noisy_) one += noise * share();
  }

  bool is_small() const {
    return optim::has_cbc() && options_.gap >= 2 * kTolerance &&
           flat_.edges.size() + flat_.configurations.size() <= kSmall;
  }

  /// Asks the exact program, once.
  void branch() {
    if (std::exchange(has_branched_, true) || is_done() || is_late()) return;
    auto solved = solve_program(instance_, Linking::tight,
                                {kAsked * options_.gap, optim::MilpLimits{}.time, kBranches});
    if (!solved) return;
    branched_ = solved->bound.count() * (1 - kTolerance);
    // Its capacities have tolerances, too.
    if (solved->objective >= result_.time || !is_within_capacities(instance_, solved->solution)) return;
    result_.solution = std::move(solved->solution);
    result_.time = solved->objective;
  }

  /// Begins with the paths that the relaxation takes most of; those it is sure of come first.
  void follow(double bound) {
    follow_by(fractionality_);
    for (const Trust trust : kFollowed) {
      placement_.sweep(trust, random_);
      keep();
      if (is_enough(bound)) return;
    }
  }

  /// What it takes some of is in fast memory as long as there is room, what it takes most of first. Where it
  /// takes half of each of many parts that are alike, following takes none of them; here some are taken
  /// whole, and no multiplier takes them apart again.
  void fill() {
    std::vector<double> less(flat_.tensors.size());
    for (const std::uint32_t t : stage_->tensors()) {
      for (std::uint32_t e = flat_.tensors[t].first; e < flat_.tensors[t].end; ++e) {
        const Flat::Edge& edge = flat_.edges[e];
        if (edge.first >= edge.end || flat_.pool(edge.first) != 0) continue;
        less[t] = std::min(less[t], -noisy_[e]);
        if (shares_[e] > kLeastShare) noisy_[e] = 1;
      }
    }
    follow_by(less);
    placement_.sweep({}, random_);
    keep();
  }

  /// Lets tensors follow the shares one after the other, twice, ascending in their keys.
  void follow_by(const std::vector<double>& key) {
    std::vector<std::uint32_t> order = stage_->tensors();
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return key[a] < key[b]; });
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::uint32_t t : order) placement_.follow(t, noisy_);
    }
  }

  /// Improves the best placement by exchanges; where moves compete, also the latest one, which may end
  /// better.
  void improve() {
    const std::uint64_t attempts = kLeastAttempts + flat_.tensors.size() / (overlaps_ ? 4 : 16);
    if (overlaps_) {
      exchange_.run(placement_, attempts, random_);
      keep();
    }
    best_->set_multipliers(multipliers_);
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
  Team team_;
  Flat flat_;
  bool overlaps_;  ///< some move may be beside a kernel
  std::unique_ptr<Stage> stage_;
  Placement placement_;
  std::optional<Placement> best_;
  Exchange exchange_;
  std::vector<double> fractionality_;    ///< by tensor
  std::vector<double> shares_;           ///< by edge
  std::vector<double> noisy_;            ///< the same, as the next placement takes them
  std::vector<std::uint32_t> going_on_;  ///< edges
  double rise_ = 0;                      ///< of the bound in the latest steps
  double branched_ = 0;                  ///< the exact program's bound
  Multipliers multipliers_;              ///< the same for all links of the whole problem
  SplitMix random_;
  FastResult result_;
  std::uint64_t rounds_ = 0;  ///< placements
  bool has_branched_ = false;
};

}  // namespace

Result<FastResult> solve_fast(const Instance& instance, const FastOptions& options) {
  return FastSolver(instance, options).solve();
}

}  // namespace terrace::autotm
