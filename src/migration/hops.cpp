// SPDX-License-Identifier: Apache-2.0
#include "migration/hops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "migration/hop_spans.hpp"
#include "migration/repack.hpp"
#include "plan/region_size.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

/// How often a plan is written with less room, until its packed regions fit.
constexpr int kAttempts = 12;

/// Fetches share one link: each begins early enough for those behind it.
void spread_fetches(const PlanRequest& request, Hop hop, const PlanRegions& regions,
                    std::vector<NearSpan>& spans) {
  std::sort(spans.begin(), spans.end(),
            [](const NearSpan& a, const NearSpan& b) { return a.fetch_by < b.fetch_by; });
  for (std::size_t i = spans.size(); i-- > 1;) {
    const Bytes bytes = request.graph[regions.all[spans[i - 1].region].tensor].bytes;
    const Seconds takes = request.machine.link(hop.far, hop.near)->time(bytes);
    spans[i - 1].fetch_by = std::min(spans[i - 1].fetch_by, spans[i].fetch_by - takes);
  }
}

/// Writes the instructions of a plan once more, with transfers between the near and the far tier.
class Hopping {
 public:
  Hopping(const PlanRequest& request, Hop hop, const Plan& plan, const PlanRegions& regions,
          const NearSpans& near, std::vector<NearSpan> spans)
      : request_(request),
        hop_(hop),
        plan_(plan),
        regions_(regions),
        near_(near),
        spans_(std::move(spans)),
        state_(regions.all.size()),
        now_(request.graph.tensors.size(), kNoRegion),
        limit_(request.budget[hop.near.index]) {
    for (std::uint32_t s = 0; s < spans_.size(); ++s) {
      if (spans_[s].begin != NearSpan::kNone) by_begin_.emplace(spans_[s].begin, s);
      if (spans_[s].end != NearSpan::kNone) by_end_.emplace(spans_[s].end, s);
    }
    for (const Instruction& one : plan.instructions) {
      if (const auto* copy = std::get_if<Copy>(&one)) next_ = std::max(next_, copy->ticket + 1);
      if (const auto* run = std::get_if<Run>(&one); run != nullptr && run->ticket)
        next_ = std::max(next_, *run->ticket + 1);
    }
  }

  Plan run() && {
    Plan made = plan_;
    made.start.clear();
    for (std::size_t i = 0; i < plan_.start.size(); ++i) begin(plan_.start[i], regions_.start[i], made.start);
    for (std::uint32_t i = 0; i < plan_.instructions.size(); ++i) {
      fetch_ahead(i);
      position_ = i;
      std::visit([this](const auto& what) { add(what); }, plan_.instructions[i]);
    }
    finish();
    made.instructions = std::move(written_);
    return made;
  }

 private:
  struct State {
    bool near = false;                          ///< it has its region in the near tier
    bool far = false;                           ///< it has one in the far tier
    bool far_is_new = false;                    ///< which has its value
    bool at_home = false;                       ///< the far one outlives the step, the near one does not
    std::optional<std::uint32_t> store, fetch;  ///< tickets of transfers that are not known to have ended
    /// Tickets of the plan's transfers with the near region that are not known to have ended: since the
    /// store, and those that the store comes after.
    std::set<std::uint32_t> users, before_store;
  };

  void emit(Instruction one) { written_.push_back(std::move(one)); }
  Bytes size(std::uint32_t region) const {
    return region_size(request_.graph[regions_.all[region].tensor], request_.machine[hop_.near]);
  }
  TensorId tensor(std::uint32_t region) const { return regions_.all[region].tensor; }

  void begin(const Alloc& region, std::uint32_t number, std::vector<Alloc>& start) {
    const auto is_home = [&](const NearSpan& span) { return span.round && span.region == number; };
    State& state = state_[number];
    if (region.tier == hop_.near) now_[region.tensor.index] = number;
    state.at_home = std::any_of(spans_.begin(), spans_.end(), is_home);
    if (!state.at_home) {
      start.push_back(region);
      if (region.tier == hop_.near) take(number);
      return;
    }
    state.far = state.far_is_new = true;
    start.push_back({region.tensor, hop_.far, 0});
  }

  void take(std::uint32_t region) {
    state_[region].near = true;
    live_ += size(region);
  }

  /// Waits where that is not known yet: a ticket is waited for once.
  void know(std::uint32_t ticket) {
    if (known_.insert(ticket).second) emit(Wait{ticket});
  }
  void know_all(State& state) {
    if (state.fetch) know(*state.fetch);
    state.fetch.reset();
    know_stored(state);
  }
  void know_stored(State& state) {
    if (!state.store) return;
    know(*state.store);
    known_.insert(state.before_store.begin(), state.before_store.end());
    state.store.reset();
    state.before_store.clear();
  }

  /// Whether the near region can go: what the plan does with it has to have ended, which is the plan's to
  /// say.
  bool may_go(std::uint32_t region) {
    auto& users = state_[region].users;
    std::erase_if(users, [&](std::uint32_t ticket) { return known_.contains(ticket); });
    return users.empty();
  }

  void give_up(std::uint32_t region) {
    know_all(state_[region]);
    emit(Free{tensor(region), hop_.near});
    state_[region].near = false;
    live_ -= size(region);
  }

  /// Gives up regions that wait for nothing but that, the first first, until there is room.
  void make_room(Bytes bytes) {
    for (std::size_t i = 0; i < leaving_.size() && live_ + bytes > limit_;) {
      if (!may_go(leaving_[i])) {
        ++i;
        continue;
      }
      give_up(leaving_[i]);
      leaving_.erase(leaving_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  void make_near(std::uint32_t region) {
    make_room(size(region));
    emit(Alloc{tensor(region), hop_.near, 0});
    take(region);
  }

  /// Brings a value back, unless it is still there.
  void fetch(std::uint32_t s) {
    NearSpan& span = spans_[s];
    State& state = state_[span.region];
    fetched_.insert(s);
    if (state.near) {
      std::erase(leaving_, span.region);
      return;
    }
    make_near(span.region);
    if (!span.is_read) return;
    state.fetch = next_++;
    emit(Copy{{tensor(span.region)}, hop_.far, hop_.near, *state.fetch});
  }

  bool has_begun(const NearSpan& span, std::uint32_t instruction) const {
    return span.round || span.begin < instruction;
  }

  void fetch_ahead(std::uint32_t instruction) {
    for (; ahead_ < spans_.size(); ++ahead_) {
      const NearSpan& span = spans_[ahead_];
      if (fetched_.contains(ahead_) || span.end == NearSpan::kNone) continue;
      const bool fits = live_ + size(span.region) <= limit_;
      if (span.fetch_by > near_.issued()[instruction] || !has_begun(span, instruction)) return;
      if (!state_[span.region].near && !fits) return;
      fetch(ahead_);
    }
  }

  void add(const Alloc& alloc) {
    if (alloc.tier != hop_.near) return emit(alloc);
    const std::uint32_t region = regions_.made_by[position_];
    now_[alloc.tensor.index] = region;
    make_room(size(region));
    emit(alloc);
    take(region);
  }

  void add(const Free& free) {
    if (free.tier != hop_.near) return emit(free);
    const std::uint32_t region = now_[free.tensor.index];
    State& state = state_[region];
    std::erase(leaving_, region);
    know_all(state);
    if (state.near) {
      emit(free);
      live_ -= size(region);
      state.near = false;
    }
    if (state.far) emit(Free{free.tensor, hop_.far});
    state.far = false;
  }

  void add(const Wait& wait) {
    // A store may have said so before.
    if (known_.insert(wait.ticket).second) emit(wait);
  }

  void add(const Run& run) { emit(run); }

  void add(const Copy& copy) {
    for (auto [at, end] = by_end_.equal_range(position_); at != end; ++at) {
      if (!fetched_.contains(at->second)) fetch(at->second);
    }
    Copy made = copy;
    const bool in = copy.from == hop_.near, out = copy.to == hop_.near;
    for (const TensorId one : copy.tensors) {
      if (!in && !out) break;
      State& state = state_[now_[one.index]];
      if (state.fetch) made.after.push_back(*state.fetch);
      if (out && state.store) made.after.push_back(*state.store);
      if (out) state.far_is_new = false;
      state.users.insert(copy.ticket);
    }
    std::erase_if(made.after, [&](std::uint32_t ticket) { return known_.contains(ticket); });
    emit(std::move(made));
    for (auto [at, end] = by_begin_.equal_range(position_); at != end; ++at) store(spans_[at->second]);
  }

  void store(const NearSpan& span) {
    State& state = state_[span.region];
    leaving_.push_back(span.region);
    if (state.far_is_new) return;
    if (!state.far) emit(Alloc{tensor(span.region), hop_.far, 0});
    state.far = state.far_is_new = true;
    know_stored(state);
    may_go(span.region);  // forgets what has ended
    state.before_store = std::exchange(state.users, {});
    state.store = next_++;
    emit(Copy{{tensor(span.region)},
              hop_.near,
              hop_.far,
              *state.store,
              {state.before_store.begin(), state.before_store.end()}});
  }

  /// What is at home in the far tier ends there.
  void finish() {
    for (std::uint32_t r = 0; r < state_.size(); ++r) {
      State& state = state_[r];
      if (state.at_home && state.near) {
        for (const std::uint32_t ticket : state.users) know(ticket);
        give_up(r);
      }
      know_all(state);
    }
  }

  const PlanRequest& request_;
  const Hop hop_;
  const Plan& plan_;
  const PlanRegions& regions_;
  const NearSpans& near_;
  std::vector<NearSpan> spans_;                                    ///< by when they are fetched
  std::multimap<std::uint32_t, std::uint32_t> by_begin_, by_end_;  ///< spans, by instruction
  std::vector<State> state_;                                       ///< by region
  std::vector<std::uint32_t> now_;  ///< by tensor: the region it has in the near tier, or has given up
  std::vector<Instruction> written_;
  std::set<std::uint32_t> known_;      ///< tickets that are known to have ended
  std::set<std::uint32_t> fetched_;    ///< spans that are over
  std::deque<std::uint32_t> leaving_;  ///< regions that may be given up, in order
  std::uint32_t position_ = 0, ahead_ = 0, next_ = 0;
  Bytes live_{}, limit_;
};

Machine with_large_near(const Machine& machine, Hop hop) {
  Machine wide = machine;
  wide.tiers[hop.near.index].capacity += wide[hop.far].capacity;
  return wide;
}

}  // namespace

std::optional<Hop> hop_of(const Machine& machine) {
  for (std::uint32_t far = 1; far < machine.tiers.size(); ++far) {
    if (machine.is_linked_both_ways({0}, {far}) || machine.is_reached({far})) continue;
    for (std::uint32_t near = 1; near < machine.tiers.size(); ++near) {
      if (machine.is_linked_both_ways({0}, {near}) && machine.is_linked_both_ways({near}, {far}))
        return Hop{{near}, {far}};
    }
  }
  return std::nullopt;
}

Result<Plan> with_hops(const PlanRequest& request, Hop hop, const Plan& plan) {
  const Machine wide = with_large_near(request.machine, hop);
  const Timeline timeline = simulate(request.graph, wide, request.profile, plan);
  const PlanRegions regions = regions_of(request, plan);
  const NearSpans near(request, plan, regions, hop.near, hop.far, timeline);
  const Bytes budget = request.budget[hop.near.index];
  Bytes room = budget;
  Plan made;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<NearSpan> spans = near.chosen(room);
    spread_fetches(request, hop, regions, spans);
    made = with_offsets(request, Hopping(request, hop, plan, regions, near, std::move(spans)).run());
    if (made.budget[hop.near.index] <= budget) break;
    const Bytes more = std::max(made.budget[hop.near.index] - budget, budget / 32);
    if (more >= room) break;
    room -= more;
  }
  made.machine = fingerprint(request.machine);
  for (std::size_t tier = 0; tier < made.budget.size(); ++tier) {
    if (made.budget[tier] <= request.budget[tier]) continue;
    return Error{ErrorCode::too_large,
                 fmt::format("tier {} is too small: the plan needs {} there and {} is given",
                             request.machine.tiers[tier].name, readable(made.budget[tier]),
                             readable(request.budget[tier]))};
  }
  if (const auto wrong = violations(request.graph, request.machine, made, 1); !wrong.empty())
    return Error{ErrorCode::inconsistent, to_text(wrong[0], request.graph, request.machine, made)};
  return made;
}

Result<Plan> plan_by_hops(const PlanRequest& request,
                          const std::function<Result<Plan>(const PlanRequest&)>& make) {
  auto plan = make(request);
  const auto hop = hop_of(request.machine);
  if (plan || !hop || plan.error().code != ErrorCode::too_large) return plan;
  const Machine wide = with_large_near(request.machine, *hop);
  PlanRequest asked{request.graph,   wide,        request.profile, request.budget, request.seed,
                    request.options, request.stop};
  asked.progress = request.progress;
  asked.agents = request.agents;
  asked.budget[hop->near.index] += asked.budget[hop->far.index];
  auto near_alone = make(asked);
  if (!near_alone) return near_alone;
  return with_hops(request, *hop, *near_alone);
}

}  // namespace terrace
