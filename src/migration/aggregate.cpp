// SPDX-License-Identifier: Apache-2.0
#include "migration/aggregate.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "migration/merged_transfers.hpp"
#include "migration/occupancy.hpp"
#include "migration/repack.hpp"
#include "plan/region_size.hpp"
#include "plan/step_uses.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

using namespace literals;

constexpr Bytes kPage = 4_KiB;
constexpr std::size_t kLeastUses = 2;
/// Small tensors may take this share of the peak for themselves (004 section III-C).
constexpr double kReserve = 0.1;

/// Which tensors may travel together: those whose next uses are at most so many kernels apart.
enum class Distance { adjacent, any };

struct Transfer {
  std::uint32_t instruction;
  std::uint32_t gap;       ///< runs before it
  std::uint32_t next_use;  ///< of its first tensor: the kernel, in the order of the plan
  std::size_t uses;        ///< of its first tensor
  bool small;              ///< all its tensors are up to a page
  Bytes bytes;
  const CopiedRegions* regions;
};

class Aggregator {
 public:
  Aggregator(const PlanRequest& request, const Plan& plan, const PlanRegions& regions, Distance distance,
             double share)
      : request_(request),
        plan_(plan),
        regions_(regions),
        distance_(distance),
        neighbours_(regions.all),
        uses_(request.graph.tensors.size()) {
    list_uses();
    list_transfers();
    for (std::uint32_t tier = 0; tier < request.machine.tiers.size(); ++tier) {
      limit_.push_back(static_cast<std::int64_t>(share * static_cast<double>(request.budget[tier].count)));
      taken_.emplace_back(static_cast<std::uint32_t>(plan.instructions.size()) + 1);
    }
    for (const PlanRegion& region : regions.all)
      taken_[region.tier.index].add(begin(region), end(region), size(region));
    reserve_ = static_cast<std::int64_t>(kReserve *
                                         static_cast<double>(Lifetimes(request.graph).peak_bytes().count));
  }

  /// The plan with its transfers merged and packed anew, or nothing where no two can travel together and no
  /// small ones lie together.
  std::optional<Aggregation> run() {
    if (!add_copies(regions_, neighbours_)) return std::nullopt;
    merge_transfers();
    const std::size_t batched = batch();
    if (merged_.empty() && batched == 0) return std::nullopt;
    Plan made = plan_;
    Rewritten rewritten = with_merged(plan_, regions_, merged_);
    made.instructions = std::move(rewritten.instructions);
    if (!holds_together(request_, made)) return std::nullopt;
    const PlanRegions now = regions_of(request_, made);
    Neighbours neighbours(now.all);
    if (!add_copies(now, neighbours)) return std::nullopt;
    carry_over(rewritten.was, now, neighbours);
    made = with_offsets(request_, std::move(made), now, neighbours);
    return Aggregation{std::move(made), regions_.copies.size(), now.copies.size(), batched};
  }

 private:
  std::uint32_t begin(const PlanRegion& region) const {
    return region.made == PlanRegion::kStart ? 0 : region.made;
  }
  std::uint32_t end(const PlanRegion& region) const {
    return region.freed == PlanRegion::kEnd ? static_cast<std::uint32_t>(plan_.instructions.size())
                                            : region.freed;
  }
  std::int64_t size(const PlanRegion& region) const {
    return static_cast<std::int64_t>(
        region_size(request_.graph[region.tensor], request_.machine[region.tier]).count);
  }

  /// The kernels that use each tensor, by their place among the runs of the plan.
  void list_uses() {
    std::uint32_t run = 0;
    for (const Instruction& instruction : plan_.instructions) {
      const auto* one = std::get_if<Run>(&instruction);
      if (one == nullptr) continue;
      const Kernel& kernel = request_.graph[one->kernel];
      for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
        for (const Operand& operand : *operands) {
          auto& uses = uses_[operand.tensor.index];
          if (uses.empty() || uses.back() != run) uses.push_back(run);
        }
      }
      ++run;
    }
  }

  /// How often a tensor is used from this run on, and when first.
  std::pair<std::size_t, std::uint32_t> future(TensorId tensor, std::uint32_t run) const {
    const auto& uses = uses_[tensor.index];
    const auto next = std::lower_bound(uses.begin(), uses.end(), run);
    return {static_cast<std::size_t>(uses.end() - next), next == uses.end() ? kNever : *next};
  }

  void list_transfers() {
    std::uint32_t run = 0;
    std::size_t copies = 0;
    for (std::uint32_t i = 0; i < plan_.instructions.size(); ++i) {
      gap_.push_back(run);
      if (std::holds_alternative<Run>(plan_.instructions[i])) ++run;
      const auto* copy = std::get_if<Copy>(&plan_.instructions[i]);
      if (copy == nullptr) continue;
      const auto [uses, next] = future(copy->tensors.front(), run);
      Transfer transfer{i, run, next, uses, true, {}, &regions_.copies[copies++]};
      for (const TensorId tensor : copy->tensors) {
        transfer.small &= request_.graph[tensor].bytes <= kPage;
        transfer.bytes += request_.graph[tensor].bytes;
      }
      transfers_.push_back(transfer);
    }
  }

  const Copy& copy_of(const Transfer& transfer) const {
    return std::get<Copy>(plan_.instructions[transfer.instruction]);
  }

  /// The room that two chains take more than now if they lie side by side, each as long as both: whether
  /// there is so much.
  bool has_room(std::uint32_t first, std::uint32_t second) const {
    const PlanRegion& region = regions_.all[first];
    if (neighbours_.chain_of(first) == neighbours_.chain_of(second) || region.is_always()) return true;
    const Extent one = extent(neighbours_.chain_of(first)), other = extent(neighbours_.chain_of(second));
    const PlannedOccupancy& taken = taken_[region.tier.index];
    const auto fits = [&](const Extent& grows, const Extent& to) {
      const std::int64_t limit = limit_[region.tier.index] - grows.bytes;
      return (to.begin >= grows.begin || taken.most(to.begin, grows.begin - 1) <= limit) &&
             (to.end <= grows.end || taken.most(grows.end + 1, to.end) <= limit);
    };
    return fits(one, other) && fits(other, one);
  }

  struct Extent {
    std::uint32_t begin, end;
    std::int64_t bytes;
  };
  Extent extent(std::uint32_t chain) const {
    Extent all{kNever, 0, 0};
    for (const std::uint32_t number : neighbours_.members(chain)) {
      const PlanRegion& region = regions_.all[number];
      all.begin = std::min(all.begin, begin(region));
      all.end = std::max(all.end, end(region));
      all.bytes += size(region);
    }
    return all;
  }

  void link(std::uint32_t first, std::uint32_t second) {
    if (neighbours_.chain_of(first) == neighbours_.chain_of(second)) return;
    const TierId tier = regions_.all[first].tier;
    PlannedOccupancy& taken = taken_[tier.index];
    const Extent one = extent(neighbours_.chain_of(first)), other = extent(neighbours_.chain_of(second));
    const auto grow = [&](const Extent& grows, const Extent& to) {
      if (to.begin < grows.begin) taken.add(to.begin, grows.begin - 1, grows.bytes);
      if (to.end > grows.end) taken.add(grows.end + 1, to.end, grows.bytes);
    };
    if (!regions_.all[first].is_always()) {
      grow(one, other);
      grow(other, one);
    }
    neighbours_.follow(first, second);
  }

  bool can_link(std::uint32_t first, std::uint32_t second) const {
    return neighbours_.can_follow(first, second) && has_room(first, second);
  }

  /// Lets the tensors of one transfer lie behind those of another in both tiers, where they can.
  bool adjoin(const Transfer& first, const Transfer& second) {
    const std::uint32_t from = first.regions->from.back(), to = first.regions->to.back();
    const std::uint32_t next_from = second.regions->from.front(), next_to = second.regions->to.front();
    if (!can_link(from, next_from) || !can_link(to, next_to)) return false;
    link(from, next_from);
    link(to, next_to);
    return true;
  }

  bool are_near(const Transfer& one, const Transfer& other) const {
    if (distance_ == Distance::any || (one.small && other.small)) return true;
    const std::uint32_t apart =
        std::max(one.next_use, other.next_use) - std::min(one.next_use, other.next_use);
    return apart <= 1;
  }

  void merge_transfers() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> together;
    for (std::uint32_t i = 0; i < transfers_.size(); ++i) {
      const Copy& copy = copy_of(transfers_[i]);
      together[{transfers_[i].gap, copy.from.index, copy.to.index}].push_back(i);
    }
    for (auto& [moment, list] : together) {
      if (list.size() < 2) continue;
      // 004 batches small ones by their accesses, then by size, and adjoins others by the distance of their
      // next use, then by their uses.
      std::stable_sort(list.begin(), list.end(), [&](std::uint32_t a, std::uint32_t b) {
        const Transfer &one = transfers_[a], &other = transfers_[b];
        if (one.small != other.small) return one.small;
        if (one.small) return std::tie(other.uses, other.bytes) < std::tie(one.uses, one.bytes);
        return std::tie(one.next_use, one.uses) < std::tie(other.next_use, other.uses);
      });
      merge(list, std::get<1>(moment) < std::get<2>(moment) ? Direction::store : Direction::fetch);
    }
  }

  void merge(const std::vector<std::uint32_t>& list, Direction direction) {
    MergedTransfer merged{{list.front()}, direction};
    const auto end = [&] {
      if (merged.copies.size() > 1) merged_.push_back(merged);
    };
    for (std::size_t i = 1; i < list.size(); ++i) {
      const Transfer& next = transfers_[list[i]];
      const Transfer &first = transfers_[merged.copies.front()], &last = transfers_[merged.copies.back()];
      if (are_near(last, next) && adjoin(last, next)) {
        merged.copies.push_back(list[i]);
      } else if (are_near(first, next) && adjoin(next, first)) {
        // An earlier transfer laid them the other way round.
        merged.copies.insert(merged.copies.begin(), list[i]);
      } else {
        end();
        merged.copies = {list[i]};
      }
    }
    end();
  }

  /// Lets small regions that are made between the same two kernels share pages. Returns how many do.
  std::size_t batch() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> together;
    for (std::uint32_t i = 0; i < regions_.all.size(); ++i) {
      const PlanRegion& region = regions_.all[i];
      if (!region.is_within_step() || request_.graph[region.tensor].bytes > kPage) continue;
      const std::uint32_t run = gap_[region.made];
      if (future(region.tensor, run).first < kLeastUses) continue;
      if (neighbours_.members(neighbours_.chain_of(i)).size() > 1) continue;
      together[{run, region.tier.index}].push_back(i);
    }
    std::size_t batched = 0;
    for (auto& [moment, list] : together) {
      const auto rank = [&, run = moment.first](std::uint32_t number) {
        const PlanRegion& region = regions_.all[number];
        return std::pair(future(region.tensor, run).first, size(region));
      };
      std::stable_sort(list.begin(), list.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return rank(a) > rank(b); });
      auto page = static_cast<std::int64_t>(kPage.count) - size(regions_.all[list.front()]);
      for (std::size_t i = 1; i < list.size(); ++i) {
        const std::int64_t bytes = size(regions_.all[list[i]]);
        if (page >= bytes && reserve_ >= bytes && can_link(list[i - 1], list[i])) {
          link(list[i - 1], list[i]);
          pages_.emplace_back(list[i - 1], list[i]);
          page -= bytes;
          reserve_ -= bytes;
          ++batched;
        } else {
          page = static_cast<std::int64_t>(kPage.count) - bytes;
        }
      }
    }
    return batched;
  }

  /// Shares pages among the rewritten plan's regions as they were shared among the plan's own.
  void carry_over(const std::vector<std::uint32_t>& was, const PlanRegions& now,
                  Neighbours& neighbours) const {
    std::map<std::uint32_t, std::uint32_t> made;  // by the instruction that made it before
    for (std::uint32_t i = 0; i < was.size(); ++i)
      if (now.made_by[i] != kNoRegion) made[was[i]] = now.made_by[i];
    for (const auto& [first, second] : pages_) {
      const std::uint32_t one = made.at(regions_.all[first].made), other = made.at(regions_.all[second].made);
      if (neighbours.can_follow(one, other)) neighbours.follow(one, other);
    }
  }

  const PlanRequest& request_;
  const Plan& plan_;
  const PlanRegions& regions_;
  Distance distance_;
  Neighbours neighbours_;
  std::vector<std::vector<std::uint32_t>> uses_;  ///< by tensor
  std::vector<std::uint32_t> gap_;                ///< by instruction: runs before it
  std::vector<Transfer> transfers_;               ///< in the order of the plan's copies
  std::vector<std::int64_t> limit_;               ///< by tier
  std::vector<PlannedOccupancy> taken_;           ///< by tier, over instructions
  std::int64_t reserve_ = 0;
  std::vector<MergedTransfer> merged_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pages_;
};

bool fits(const PlanRequest& request, const Plan& plan) {
  for (std::size_t tier = 0; tier < plan.budget.size(); ++tier)
    if (plan.budget[tier] > request.budget[tier]) return false;
  return true;
}

}  // namespace

Aggregation aggregated(const PlanRequest& request, Plan plan) {
  Aggregation best{std::move(plan)};
  if (!has_one_lane(best.plan) || !holds_together(request, best.plan)) return best;
  const Plan original = best.plan;
  const PlanRegions regions = regions_of(request, original);
  best.transfers_before = best.transfers = regions.copies.size();
  const KernelClock clock(request.graph, request.machine, request.profile);
  Seconds step = simulate(request.graph, request.machine, clock, original).step;
  for (const Distance distance : {Distance::adjacent, Distance::any}) {
    // Packing needs more than the bytes in use: with less of it given away, it fits.
    for (const double share : {1.0, 0.9, 0.75}) {
      auto made = Aggregator(request, original, regions, distance, share).run();
      if (!made) break;
      if (!fits(request, made->plan) || !violations(request.graph, request.machine, made->plan, 1).empty())
        continue;
      const Seconds now = simulate(request.graph, request.machine, clock, made->plan).step;
      if (now <= step && (now < step || made->transfers < best.transfers || best.batched < made->batched)) {
        step = now;
        best = *std::move(made);
      }
      break;
    }
  }
  return best;
}

}  // namespace terrace
