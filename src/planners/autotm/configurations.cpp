#include "planners/autotm/configurations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace terrace::autotm {
namespace {

/// Operands that choose alone where kernels can use two tiers, and where they can use more.
constexpr std::size_t kFreeOperands = 6, kFreeOfMore = 4;
constexpr TierId kFast{0};
constexpr Bytes kUnlimited{~std::uint64_t{0}};

class Enumeration {
 public:
  Enumeration(const PlanRequest& request, const KernelClock& clock, KernelId id,
              std::span<const TensorId> operands, const Instance& instance)
      : request_(request),
        clock_(clock),
        id_(id),
        kernel_(request.graph[id]),
        operands_(operands),
        pools_(instance.pools()) {
    for (const TierId tier : instance.tiers()) {
      if (request.machine[tier].addressable) tiers_.push_back(tier);
    }
    number_operands();
    group_operands();
    for (std::uint32_t variant = 0; variant < std::max<std::size_t>(1, kernel_.variants.size()); ++variant) {
      if (has_room(variant)) add(variant);
    }
    drop_dominated();
  }

  Result<std::vector<Configuration>> within_capacities() const {
    std::vector<Configuration> kept;
    for (const Choice& choice : choices_) {
      if (fits(choice.places)) kept.push_back(configuration(choice));
    }
    if (!kept.empty()) return kept;
    return Error{ErrorCode::too_large, shortage()};
  }

 private:
  /// By group, where what it holds is: a place in tiers_.
  using Places = std::array<std::uint8_t, kFreeOperands + 2>;
  struct Choice {
    std::uint32_t variant;
    Places places;
    Seconds time;
  };

  bool has_workspace() const { return static_cast<bool>(kernel_.workspace); }
  TierId tier(const Places& places, std::size_t operand) const { return tiers_[places[group_[operand]]]; }
  TierId workspace_tier(const Places& places) const { return tiers_[places[groups_ - 1]]; }

  /// Which of the distinct tensors each operand of the kernel is.
  void number_operands() {
    for (const auto* list : {&kernel_.inputs, &kernel_.outputs}) {
      for (const Operand& operand : *list) {
        number_.push_back(static_cast<std::size_t>(
            std::find(operands_.begin(), operands_.end(), operand.tensor) - operands_.begin()));
      }
    }
  }

  void group_operands() {
    const TierId second = tiers_[std::min<std::size_t>(1, tiers_.size() - 1)];
    const std::size_t free = tiers_.size() <= 2 ? kFreeOperands : kFreeOfMore;
    std::vector<Seconds> access(operands_.size());
    for (std::size_t i = 0; i < number_.size(); ++i) access[number_[i]] += clock_.access(id_, i, second);
    std::vector<std::size_t> order(operands_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return access[a] > access[b]; });
    group_.resize(operands_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      group_[order[i]] = static_cast<std::uint32_t>(std::min(i, free));
    }
    groups_ = static_cast<std::uint32_t>(std::min(order.size(), free + 1)) + (has_workspace() ? 1 : 0);
  }

  bool has_room(std::uint32_t variant) const {
    if (!has_workspace() || kernel_.variants.empty()) return true;
    return kernel_.variants[variant].workspace <= request_.graph[kernel_.workspace].bytes;
  }

  Seconds time(std::uint32_t variant, const Places& places) const {
    std::vector<TierId> tiers;
    for (const std::size_t operand : number_) tiers.push_back(tier(places, operand));
    if (has_workspace()) tiers.push_back(workspace_tier(places));
    return clock_.time(id_, variant, tiers);
  }

  /// All places, counted up from everything in fast memory: what has one group in the next faster tier came
  /// before.
  void add(std::uint32_t variant) {
    std::vector<Seconds> times;
    Places places{};
    for (bool more = true; more; more = next(places)) {
      Seconds least = time(variant, places);
      std::size_t step = 1;
      for (std::uint32_t group = 0; group < groups_; ++group, step *= tiers_.size()) {
        if (places[group] > 0) least = std::max(least, times[times.size() - step]);
      }
      times.push_back(least);
      choices_.push_back({variant, places, least});
    }
  }

  bool next(Places& places) const {
    for (std::uint32_t group = 0; group < groups_; ++group) {
      if (++places[group] < tiers_.size()) return true;
      places[group] = 0;
    }
    return false;
  }

  bool is_pool(TierId tier) const {
    return std::any_of(pools_.begin(), pools_.end(), [&](const Pool& pool) { return pool.tier == tier; });
  }

  /// Asks for no more and takes no longer; of two alike the first stays. A workspace takes memory of its
  /// tier: only one that is no pool is no demand.
  bool dominates(const Choice& a, const Choice& b) const {
    if (a.time > b.time) return false;
    for (std::uint32_t group = 0; group < groups_; ++group) {
      if (a.places[group] < b.places[group]) return false;
    }
    if (has_workspace() && workspace_tier(a.places) != workspace_tier(b.places) &&
        is_pool(workspace_tier(a.places)))
      return false;
    return a.places != b.places || a.time < b.time || a.variant < b.variant;
  }

  void drop_dominated() {
    const std::vector<Choice> every = choices_;
    std::erase_if(choices_, [&](const Choice& one) {
      return std::any_of(every.begin(), every.end(),
                         [&](const Choice& other) { return dominates(other, one); });
    });
  }

  Bytes size(TensorId tensor, TierId tier) const {
    return round_up(request_.graph[tensor].bytes, request_.machine[tier].granularity);
  }
  Bytes scratch(const Places& places) const {
    if (!has_workspace() || !is_pool(workspace_tier(places))) return {};
    return size(kernel_.workspace, workspace_tier(places));
  }

  /// What has to be in this tier or a faster one.
  Bytes asked(const Places& places, TierId slowest) const {
    Bytes bytes = has_workspace() && workspace_tier(places) <= slowest ? scratch(places) : Bytes{};
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (tier(places, i) <= slowest) bytes += size(operands_[i], kFast);
    }
    return bytes;
  }

  bool fits(const Places& places) const {
    Bytes together;
    for (const Pool& pool : pools_) {
      together += pool.capacity;
      if (asked(places, pool.tier) > together) return false;
    }
    return true;
  }

  /// Where no choice fits: what the least demanding asks for.
  std::string shortage() const {
    Bytes least = kUnlimited, given = pools_[0].capacity;
    for (const Choice& choice : choices_) least = std::min(least, asked(choice.places, kFast));
    const bool is_fast = least > given;
    if (!is_fast) {
      least = kUnlimited;
      for (std::size_t i = 1; i < pools_.size(); ++i) given += pools_[i].capacity;
      for (const Choice& choice : choices_) least = std::min(least, asked(choice.places, pools_.back().tier));
    }
    return fmt::format("{} needs {} of {} memory at once and {} is given: {} are missing", kernel_.name,
                       readable(least), is_fast ? "fast" : "faster", readable(given),
                       readable(least - given));
  }

  Configuration configuration(const Choice& choice) const {
    Configuration made;
    made.variant = choice.variant;
    for (std::size_t i = 0; i < operands_.size(); ++i) made.tiers.push_back(tier(choice.places, i));
    made.workspace = has_workspace() ? workspace_tier(choice.places) : kFast;
    made.scratch = scratch(choice.places);
    made.time = choice.time;
    return made;
  }

  const PlanRequest& request_;
  const KernelClock& clock_;
  KernelId id_;
  const Kernel& kernel_;
  std::span<const TensorId> operands_;
  std::vector<Pool> pools_;
  std::vector<TierId> tiers_;         ///< that the kernel can use, from the fastest on
  std::vector<std::size_t> number_;   ///< by operand of the kernel
  std::vector<std::uint32_t> group_;  ///< by distinct tensor
  std::uint32_t groups_ = 0;          ///< the last is the workspace, where there is one
  std::vector<Choice> choices_;
};

}  // namespace

Result<std::vector<Configuration>> configurations(const PlanRequest& request, const KernelClock& clock,
                                                  KernelId kernel, std::span<const TensorId> operands,
                                                  const Instance& instance) {
  return Enumeration(request, clock, kernel, operands, instance).within_capacities();
}

}  // namespace terrace::autotm
