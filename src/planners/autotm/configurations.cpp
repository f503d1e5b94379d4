#include "planners/autotm/configurations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace terrace::autotm {
namespace {

constexpr std::size_t kFreeOperands = 6;
constexpr TierId kFast{0};

class Enumeration {
 public:
  Enumeration(const PlanRequest& request, const KernelClock& clock, KernelId id,
              std::span<const TensorId> operands, TierId slow)
      : request_(request),
        clock_(clock),
        id_(id),
        kernel_(request.graph[id]),
        operands_(operands),
        slow_(slow) {
    number_operands();
    group_operands();
    for (std::uint32_t variant = 0; variant < std::max<std::size_t>(1, kernel_.variants.size()); ++variant) {
      if (has_room(variant)) add(variant);
    }
    drop_dominated();
  }

  Result<std::vector<Configuration>> within(Bytes capacity) const {
    std::vector<Configuration> kept;
    Bytes least{~std::uint64_t{0}};
    for (const Choice& choice : choices_) {
      const Bytes bytes = fast_bytes(choice.mask);
      least = std::min(least, bytes);
      if (bytes <= capacity) kept.push_back(configuration(choice));
    }
    if (!kept.empty()) return kept;
    return Error{ErrorCode::too_large,
                 fmt::format("{} needs {} of fast memory at once and {} is given: {} are missing",
                             kernel_.name, readable(least), readable(capacity), readable(least - capacity))};
  }

 private:
  /// Bit i: what group i holds is in fast memory.
  struct Choice {
    std::uint32_t variant, mask;
    Seconds time;
  };

  bool has_workspace() const { return static_cast<bool>(kernel_.workspace); }
  std::uint32_t all() const { return (1U << groups_) - 1; }
  bool is_fast(std::uint32_t mask, std::size_t operand) const { return (mask >> group_[operand] & 1U) != 0; }
  TierId tier(std::uint32_t mask, std::size_t operand) const {
    return is_fast(mask, operand) ? kFast : slow_;
  }
  TierId workspace_tier(std::uint32_t mask) const {
    return (mask >> (groups_ - 1) & 1U) != 0 ? kFast : slow_;
  }

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
    std::vector<Seconds> access(operands_.size());
    for (std::size_t i = 0; i < number_.size(); ++i) access[number_[i]] += clock_.access(id_, i, slow_);
    std::vector<std::size_t> order(operands_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return access[a] > access[b]; });
    group_.resize(operands_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      group_[order[i]] = static_cast<std::uint32_t>(std::min(i, kFreeOperands));
    }
    groups_ =
        static_cast<std::uint32_t>(std::min(order.size(), kFreeOperands + 1)) + (has_workspace() ? 1 : 0);
  }

  bool has_room(std::uint32_t variant) const {
    if (!has_workspace() || kernel_.variants.empty()) return true;
    return kernel_.variants[variant].workspace <= request_.graph[kernel_.workspace].bytes;
  }

  Seconds time(std::uint32_t variant, std::uint32_t mask) const {
    std::vector<TierId> tiers;
    for (const std::size_t operand : number_) tiers.push_back(tier(mask, operand));
    if (has_workspace()) tiers.push_back(workspace_tier(mask));
    return clock_.time(id_, variant, tiers);
  }

  void add(std::uint32_t variant) {
    const bool in_place = slow_ != kFast && request_.machine[slow_].addressable;
    if (!in_place) return choices_.push_back({variant, all(), time(variant, all())});
    std::vector<Seconds> times(all() + 1);
    for (std::uint32_t mask = all() + 1; mask-- > 0;) {
      times[mask] = time(variant, mask);
      for (std::uint32_t bit = 1; bit <= all(); bit <<= 1)
        times[mask] = std::max(times[mask], times[mask | bit]);
      choices_.push_back({variant, mask, times[mask]});
    }
  }

  /// Asks for no more and takes no longer; of two alike the first stays.
  static bool dominates(const Choice& a, const Choice& b) {
    if ((a.mask & ~b.mask) != 0 || a.time > b.time) return false;
    return a.mask != b.mask || a.time < b.time || a.variant < b.variant;
  }

  void drop_dominated() {
    const std::vector<Choice> every = choices_;
    std::erase_if(choices_, [&](const Choice& one) {
      return std::any_of(every.begin(), every.end(),
                         [&](const Choice& other) { return dominates(other, one); });
    });
  }

  Bytes size(TensorId tensor) const {
    return round_up(request_.graph[tensor].bytes, request_.machine[kFast].granularity);
  }
  Bytes scratch(std::uint32_t mask) const {
    return has_workspace() && workspace_tier(mask) == kFast ? size(kernel_.workspace) : Bytes{};
  }
  Bytes fast_bytes(std::uint32_t mask) const {
    Bytes bytes = scratch(mask);
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (is_fast(mask, i)) bytes += size(operands_[i]);
    }
    return bytes;
  }

  Configuration configuration(const Choice& choice) const {
    Configuration made;
    made.variant = choice.variant;
    for (std::size_t i = 0; i < operands_.size(); ++i) made.tiers.push_back(tier(choice.mask, i));
    made.workspace = has_workspace() ? workspace_tier(choice.mask) : kFast;
    made.scratch = scratch(choice.mask);
    made.time = choice.time;
    return made;
  }

  const PlanRequest& request_;
  const KernelClock& clock_;
  KernelId id_;
  const Kernel& kernel_;
  std::span<const TensorId> operands_;
  TierId slow_;
  std::vector<std::size_t> number_;   ///< by operand of the kernel
  std::vector<std::uint32_t> group_;  ///< by distinct tensor
  std::uint32_t groups_ = 0;          ///< the last is the workspace, where there is one
  std::vector<Choice> choices_;
};

}  // namespace

Result<std::vector<Configuration>> configurations(const PlanRequest& request, const KernelClock& clock,
                                                  KernelId kernel, std::span<const TensorId> operands,
                                                  TierId slow, Bytes capacity) {
  return Enumeration(request, clock, kernel, operands, slow).within(capacity);
}

}  // namespace terrace::autotm
