// SPDX-License-Identifier: Apache-2.0
#include "migration/hop_spans.hpp"

#include <algorithm>

#include "plan/region_size.hpp"

namespace terrace {

NearSpans::NearSpans(const PlanRequest& request, const Plan& plan, const PlanRegions& regions, TierId near,
                     TierId far, const Timeline& timeline)
    : regions_(regions),
      near_(near),
      far_(far),
      uses_(regions.all.size()),
      stays_(regions.all.size()),
      taken_(plan.instructions.size() + 1) {
  Seconds now{0};
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (!std::holds_alternative<Copy>(plan.instructions[i]))
      now = std::max(now, timeline.instructions[i].begin);
    issued_.push_back(now);
  }
  find_uses(request, plan);
  for (std::uint32_t r = 0; r < regions.all.size(); ++r) {
    const PlanRegion& region = regions.all[r];
    if (region.tier != near) continue;
    const auto bytes =
        static_cast<double>(region_size(request.graph[region.tensor], request.machine[near]).count);
    const std::uint32_t first = region.made == PlanRegion::kStart ? 0 : region.made;
    const auto end = static_cast<std::uint32_t>(taken_.size());
    for (std::uint32_t i = first; i < std::min(region.freed, end); ++i) taken_[i] += bytes;
    if (!stays_[r]) add_spans(request, r, timeline);
  }
}

void NearSpans::find_uses(const PlanRequest& request, const Plan& plan) {
  for (const CopiedRegions& copy : regions_.copies) {
    const auto add = [&](const std::vector<std::uint32_t>& side, bool writes) {
      for (const std::uint32_t region : side) {
        if (regions_.all[region].tier != near_) continue;
        uses_[region].push_back({copy.instruction, writes});
        // What travels as one lies side by side, and would have to come back so.
        if (side.size() > 1) stays_[region] = true;
      }
    };
    add(copy.from, false);
    add(copy.to, true);
  }
  // What a kernel uses in the near tier stays there: another engine may.
  std::vector<bool> used(request.graph.tensors.size());
  for (const Instruction& one : plan.instructions) {
    const auto* run = std::get_if<Run>(&one);
    if (run == nullptr) continue;
    const Kernel& kernel = request.graph[run->kernel];
    std::size_t i = 0;
    for (const auto* side : {&kernel.inputs, &kernel.outputs}) {
      for (const Operand& operand : *side) {
        if (run->tiers[i++] == near_) used[operand.tensor.index] = true;
      }
    }
    if (i < run->tiers.size() && run->tiers[i] == near_) used[kernel.workspace.index] = true;
  }
  for (std::uint32_t r = 0; r < uses_.size(); ++r)
    stays_[r] =
        stays_[r] || used[regions_.all[r].tensor.index] ||
        (regions_.all[r].tier == near_ && !regions_.all[r].is_within_step() && !regions_.all[r].is_always());
}

/// The first instruction that is issued at that time or later.
std::uint32_t NearSpans::first_at(Seconds time) const {
  return static_cast<std::uint32_t>(std::lower_bound(issued_.begin(), issued_.end(), time) - issued_.begin());
}

void NearSpans::add_spans(const PlanRequest& request, std::uint32_t r, const Timeline& timeline) {
  const PlanRegion& region = regions_.all[r];
  const Bytes bytes = request.graph[region.tensor].bytes;
  const Seconds out = request.machine.link(near_, far_)->time(bytes),
                in = request.machine.link(far_, near_)->time(bytes);
  const auto taken =
      static_cast<double>(region_size(request.graph[region.tensor], request.machine[near_]).count);
  const auto& uses = uses_[r];
  const auto when = [&](const NearUse& use) { return timeline.instructions[use.instruction]; };
  for (std::size_t i = 1; i < uses.size(); ++i) {
    if (uses[i].writes) continue;  // what is overwritten need not be kept
    const Seconds from = when(uses[i - 1]).end + out, until = when(uses[i]).begin - in;
    if (until <= from) continue;
    const NearSpan span{r, uses[i - 1].instruction, uses[i].instruction, false, true, until};
    reliefs_.push_back({span, first_at(from), first_at(until), until - from, taken});
  }
  if (!region.is_always()) return;
  NearSpan span{r, NearSpan::kNone, NearSpan::kNone, true, false, timeline.step};
  const auto end = static_cast<std::uint32_t>(issued_.size());
  Relief relief{span, end, end, timeline.step, taken};
  if (!uses.empty()) {
    relief.span.begin = uses.back().instruction;
    relief.span.end = uses.front().instruction;
    relief.span.is_read = !uses.front().writes;
    relief.span.fetch_by =
        std::max(Seconds{0}, when(uses.front()).begin - (relief.span.is_read ? in : Seconds{0}));
    relief.from = first_at(relief.span.fetch_by);
    relief.until = first_at(when(uses.back()).end + out);
    relief.length = timeline.step - (when(uses.back()).end + out - relief.span.fetch_by);
  }
  reliefs_.push_back(relief);
}

std::vector<NearSpan> NearSpans::chosen(Bytes room) const {
  const auto limit = static_cast<double>(room.count);
  std::vector<double> taken = taken_;
  std::vector<bool> given_up(reliefs_.size());
  // A region that goes round is at home in the far tier, which pays with one transfer each way.
  for (;;) {
    const auto worst =
        static_cast<std::uint32_t>(std::max_element(taken.begin(), taken.end()) - taken.begin());
    if (taken[worst] <= limit) break;
    std::size_t best = reliefs_.size();
    for (std::size_t i = 0; i < reliefs_.size(); ++i) {
      if (given_up[i] || !reliefs_[i].covers(worst)) continue;
      if (best == reliefs_.size() || reliefs_[i].length > reliefs_[best].length) best = i;
    }
    if (best == reliefs_.size()) {
      taken[worst] = 0;  // nothing can be given up then: transfers have to be waited for
      continue;
    }
    given_up[best] = true;
    for (std::uint32_t i = 0; i < taken.size(); ++i) {
      if (reliefs_[best].covers(i)) taken[i] -= reliefs_[best].bytes;
    }
  }
  std::vector<NearSpan> spans;
  for (std::size_t i = 0; i < reliefs_.size(); ++i) {
    if (given_up[i]) spans.push_back(reliefs_[i].span);
  }
  return spans;
}

}  // namespace terrace
