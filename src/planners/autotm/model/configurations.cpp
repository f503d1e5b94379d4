// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/model/configurations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "plan/region_size.hpp"

namespace terrace::autotm {
namespace {

/// How many operands of a kernel choose their tier independently: with two tiers, and with more.
constexpr std::size_t kFreeOperands = 6, kFreeOfMore = 4;
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
      if (has_room(variant)) add_times(variant);
    }
  }

  /// Adds the configurations that are faster than all those which ask for less.
  Result<void> add_to(KernelChoice& choice) {
    for (std::size_t v = 0; v < variants_.size(); ++v) {
      std::size_t code = 0;
      Places places{};
      for (bool more = true; more; more = next(places), ++code) {
        if (!is_dominated(v, code, places) && fits(places)) add(choice, variants_[v], places, times(v)[code]);
      }
    }
    choice.configurations.shrink_to_fit();
    choice.tiers.shrink_to_fit();
    if (choice.configurations.empty()) return Error{ErrorCode::too_large, shortage()};
    return {};
  }

 private:
  /// By group of operands, an index into tiers_. The indices are also the digits of a number, the first group
  /// being the lowest digit: the code of the placement.
  using Places = std::array<std::uint8_t, kFreeOperands + 2>;

  bool has_workspace() const { return static_cast<bool>(kernel_.workspace); }
  TierId tier(const Places& places, std::size_t operand) const { return tiers_[places[group_[operand]]]; }
  bool is_workspace(std::uint32_t group) const { return has_workspace() && group + 1 == groups_; }
  TierId workspace_tier(const Places& places) const { return tiers_[places[groups_ - 1]]; }

  /// Finds which of the distinct tensors each operand of the kernel is.
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

  Seconds time(std::uint32_t variant, const Places& places) {
    asked_.clear();
    for (const std::size_t operand : number_) asked_.push_back(tier(places, operand));
    if (has_workspace()) asked_.push_back(workspace_tier(places));
    return clock_.time(id_, variant, asked_);
  }

  /// Adds the times of all placements in the order of their codes, from everything in fast memory on, so that
  /// a placement with one group in the next faster tier comes earlier.
  void add_times(std::uint32_t variant) {
    variants_.push_back(variant);
    std::size_t code = 0;
    Places places{};
    for (bool more = true; more; more = next(places), ++code) {
      Seconds least = time(variant, places);
      std::size_t step = 1;
      for (std::uint32_t group = 0; group < groups_; ++group, step *= tiers_.size()) {
        if (places[group] > 0) least = std::max(least, times_[times_.size() - step]);
      }
      times_.push_back(least);
    }
    codes_ = code;
  }
  /// Returns the times of a variant, by code.
  const Seconds* times(std::size_t variant) const { return times_.data() + variant * codes_; }

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

  /// Returns whether another configuration asks for no more and takes no longer; of two equal ones the first
  /// stays. Times never fall with slower tiers, so if a dominating placement has several groups in slower
  /// tiers, one with a single group in a slower tier dominates, too. A workspace takes memory of its tier, so
  /// moving it to a slower one asks for less only where that tier is no pool.
  bool is_dominated(std::size_t variant, std::size_t code, const Places& places) const {
    const Seconds own = times(variant)[code];
    for (std::size_t v = 0; v < variants_.size(); ++v) {
      const Seconds* all = times(v);
      if (all[code] < own || (all[code] == own && v < variant)) return true;
      std::size_t step = 1;
      for (std::uint32_t group = 0; group < groups_; ++group, step *= tiers_.size()) {
        for (std::size_t slower = places[group] + 1U; slower < tiers_.size(); ++slower) {
          if (is_workspace(group) && is_pool(tiers_[slower])) continue;
          if (all[code + (slower - places[group]) * step] <= own) return true;
        }
      }
    }
    return false;
  }

  Bytes size(TensorId tensor, TierId tier) const {
    return region_size(request_.graph[tensor], request_.machine[tier]);
  }
  Bytes scratch(const Places& places) const {
    if (!has_workspace() || !is_pool(workspace_tier(places))) return {};
    return size(kernel_.workspace, workspace_tier(places));
  }

  /// Returns the bytes that have to be in this tier or a faster one.
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

  /// Returns the least of asked() over all placements.
  Bytes least_asked(TierId slowest) const {
    Bytes least = kUnlimited;
    Places places{};
    for (bool more = true; more; more = next(places)) least = std::min(least, asked(places, slowest));
    return least;
  }

  /// Says, where no configuration fits, what the least demanding one asks for.
  std::string shortage() const {
    Bytes least = least_asked(kFast), given = pools_[0].capacity;
    const bool is_fast = least > given;
    if (!is_fast) {
      for (std::size_t i = 1; i < pools_.size(); ++i) given += pools_[i].capacity;
      least = least_asked(pools_.back().tier);
    }
    return fmt::format("{} needs {} of {} memory at once and {} is given: {} are missing", kernel_.name,
                       readable(least), is_fast ? "fast" : "faster", readable(given),
                       readable(least - given));
  }

  void add(KernelChoice& choice, std::uint32_t variant, const Places& places, Seconds time) {
    asked_.clear();
    for (std::size_t i = 0; i < operands_.size(); ++i) asked_.push_back(tier(places, i));
    const TierId workspace = has_workspace() ? workspace_tier(places) : kFast;
    choice.add({variant, workspace, scratch(places), time}, asked_);
  }

  const PlanRequest& request_;
  const KernelClock& clock_;
  KernelId id_;
  const Kernel& kernel_;
  std::span<const TensorId> operands_;
  std::vector<Pool> pools_;
  std::vector<TierId> tiers_;            ///< tiers that the kernel can use, the fastest first
  std::vector<std::size_t> number_;      ///< by operand of the kernel
  std::vector<std::uint32_t> group_;     ///< by distinct tensor
  std::uint32_t groups_ = 0;             ///< the last is the workspace, where there is one
  std::vector<std::uint32_t> variants_;  ///< those with room
  std::vector<Seconds> times_;           ///< by these variants, then by code
  std::size_t codes_ = 0;
  std::vector<TierId> asked_;  ///< scratch: the tiers of one configuration
};

}  // namespace

Result<void> add_configurations(const PlanRequest& request, const KernelClock& clock, KernelId kernel,
                                std::span<const TensorId> operands, Instance& instance) {
  return Enumeration(request, clock, kernel, operands, instance).add_to(instance.kernels[kernel.index]);
}

}  // namespace terrace::autotm
