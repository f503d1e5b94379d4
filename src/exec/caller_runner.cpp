// SPDX-License-Identifier: Apache-2.0
#include "exec/caller_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace terrace {
namespace {
using namespace literals;

constexpr TierId kFast{0};
constexpr Bytes kBounce = 32_MiB;

/// The tier that some kernel uses in place, and that is not the caller's.
const Run* outside_of_fast(const Plan& plan) {
  for (const Instruction& instruction : plan.instructions) {
    const auto* run = std::get_if<Run>(&instruction);
    if (run != nullptr &&
        std::any_of(run->tiers.begin(), run->tiers.end(), [](TierId t) { return t != kFast; }))
      return run;
  }
  return nullptr;
}

Result<std::unique_ptr<Tier>> open_slow(const Machine& machine, std::uint32_t index, Bytes budget) {
  const MachineTier& tier = machine.tiers[index];
  auto spec = parse_tier_spec(tier.spec);
  if (tier.spec.empty() || !spec) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("tier {} of machine {} has no spec by which it could be opened here: plan for this "
                    "computer, or for a machine whose tiers have one",
                    tier.name, machine.name)};
  }
  spec->capacity = round_up(budget, tier.granularity);
  return open_tier(*spec);
}

}  // namespace

Result<std::unique_ptr<CallerRunner>> CallerRunner::open(Graph graph, Machine machine, VerifiedPlan plan,
                                                         CallerMemory memory) {
  if (const Run* run = outside_of_fast(plan.plan())) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("kernel {} of this plan uses a slower tier in place, which a caller with memory of "
                    "its own cannot: plan for a machine whose slower tiers are not addressable",
                    graph[run->kernel].name)};
  }
  std::unique_ptr<CallerRunner> made(
      new CallerRunner(std::move(graph), std::move(machine), std::move(plan), std::move(memory)));
  if (auto opened = made->open_tiers(); !opened) return opened.error();
  made->look_ahead();
  made->begin_step();
  return made;
}

CallerRunner::CallerRunner(Graph graph, Machine machine, VerifiedPlan plan, CallerMemory memory)
    : graph_(std::move(graph)),
      machine_(std::move(machine)),
      plan_(std::move(plan)),
      memory_(std::move(memory)),
      tiers_(machine_.tiers.size()),
      numbers_(machine_.tiers.size()),
      places_(graph_.tensors.size()) {
  timeline_.instructions.resize(plan_->instructions.size());
}

Result<void> CallerRunner::open_tiers() {
  host_ = borrow_host_memory();
  std::vector<Tier*> moved{host_.get()};
  for (std::uint32_t i = 1; i < machine_.tiers.size(); ++i) {
    if (plan_->budget[i] == Bytes{0}) continue;
    auto tier = open_slow(machine_, i, plan_->budget[i]);
    if (!tier) return tier.error();
    numbers_[i] = {static_cast<std::uint32_t>(moved.size())};
    tiers_[i] = *std::move(tier);
    moved.push_back(tiers_[i].get());
  }
  if (moved.size() < 2) return {};
  MoverOptions options;
  options.bounce = kBounce;
  options.helpers = copy_helpers(moved);
  mover_ = std::make_unique<Mover>(std::move(moved), options);
  return {};
}

// Whether a region is made for a transfer or for a kernel shows at its first use.
void CallerRunner::look_ahead() {
  const auto& instructions = plan_->instructions;
  filled_.assign(instructions.size(), false);
  std::vector<std::size_t> made(graph_.tensors.size(), instructions.size());
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (const auto* alloc = std::get_if<Alloc>(&instructions[i]); alloc != nullptr && alloc->tier == kFast)
      made[alloc->tensor.index] = i;
    const auto* copy = std::get_if<Copy>(&instructions[i]);
    if (copy == nullptr || copy->to != kFast) continue;
    for (const TensorId tensor : copy->tensors) {
      if (made[tensor.index] < instructions.size()) filled_[made[tensor.index]] = true;
    }
  }
}

void CallerRunner::begin_step() {
  offsets_.assign(graph_.tensors.size() * machine_.tiers.size(), std::nullopt);
  held_.assign(machine_.tiers.size(), Bytes{0});
  timeline_.peak.assign(machine_.tiers.size(), Bytes{0});
  timeline_.moved.clear();
  timeline_.exposed = Seconds{0};
  for (const Alloc& region : plan_->start) {
    offset(region.tensor, region.tier) = region.offset;
    held_[region.tier.index] += round_up(graph_[region.tensor].bytes, machine_[region.tier].granularity);
  }
  timeline_.peak = held_;
}

std::optional<std::uint64_t>& CallerRunner::offset(TensorId tensor, TierId tier) {
  return offsets_[tensor.index * machine_.tiers.size() + tier.index];
}

Extent CallerRunner::extent(TensorId tensor, TierId tier, std::byte* memory) {
  const Bytes bytes = graph_[tensor].bytes;
  if (tier == kFast) return borrowed_extent({0}, memory, bytes);
  const auto& where = offset(tensor, tier);
  check(where.has_value(), "a transfer's tensors have regions at both ends");
  return {numbers_[tier.index], *where, round_up(bytes, machine_[tier].granularity)};
}

void CallerRunner::perform(std::size_t instruction, const Alloc& alloc) {
  offset(alloc.tensor, alloc.tier) = alloc.offset;
  held_[alloc.tier.index] += round_up(graph_[alloc.tensor].bytes, machine_[alloc.tier].granularity);
  timeline_.peak[alloc.tier.index] = std::max(timeline_.peak[alloc.tier.index], held_[alloc.tier.index]);
  if (alloc.tier != kFast) return;
  using Filled = CallerMemory::Filled;
  places_[alloc.tensor.index] =
      memory_.alloc(alloc.tensor, filled_[instruction] ? Filled::by_transfer : Filled::by_kernel);
}

void CallerRunner::perform(std::size_t, const Free& free) {
  offset(free.tensor, free.tier).reset();
  held_[free.tier.index] -= round_up(graph_[free.tensor].bytes, machine_[free.tier].granularity);
  if (free.tier == kFast) memory_.release(free.tensor);
}

/// Waits for a transfer and, as the verifier takes for granted, for the earlier ones of its link. A ticket
/// that is not there is that of a run, which is over, or of a transfer that a later one's wait has finished.
void CallerRunner::finish(std::uint32_t ticket) {
  const auto found = std::find_if(transfers_.begin(), transfers_.end(),
                                  [&](const Started& started) { return started.ticket == ticket; });
  if (found == transfers_.end()) return;
  const auto link_of = [&](const Started& started) {
    const auto& copy = std::get<Copy>(plan_->instructions[started.copy]);
    return std::pair(copy.from, copy.to);
  };
  const auto link = link_of(*found);
  const std::size_t last = found->copy;
  for (Started& started : transfers_) {
    if (started.copy > last || link_of(started) != link) continue;
    if (started.transfer.valid()) started.transfer.wait();
    timeline_.instructions[started.copy].end = now();
  }
  std::erase_if(transfers_,
                [&](const Started& started) { return started.copy <= last && link_of(started) == link; });
}

void CallerRunner::perform(std::size_t instruction, const Copy& copy) {
  for (const std::uint32_t ticket : copy.after) finish(ticket);
  std::vector<Move> moves;
  Bytes amount{0};
  for (const TensorId tensor : copy.tensors) {
    const Bytes bytes = graph_[tensor].bytes;
    if (bytes == Bytes{0}) continue;
    Extent from = extent(tensor, copy.from, copy.from == kFast ? memory_.address(tensor) : nullptr);
    from.bytes = bytes;
    moves.push_back({from, extent(tensor, copy.to, places_[tensor.index])});
    amount += bytes;
  }
  timeline_.instructions[instruction].begin = now();
  transfers_.push_back(
      {copy.ticket, instruction, moves.empty() ? Transfer{} : mover_->start(std::move(moves))});
  for (Traffic& traffic : timeline_.moved) {
    if (traffic.from == copy.from && traffic.to == copy.to) return void(traffic.bytes += amount);
  }
  timeline_.moved.push_back({copy.from, copy.to, amount});
}

void CallerRunner::perform(std::size_t instruction, const Wait& wait) {
  const Seconds begin = now();
  finish(wait.ticket);
  timeline_.instructions[instruction] = {begin, now()};
}

void CallerRunner::perform(std::size_t instruction, const Run& run) {
  for (const std::uint32_t ticket : run.after) finish(ticket);
  const Seconds begin = now();
  memory_.run(run);
  timeline_.instructions[instruction] = {begin, now()};
  timeline_.exposed -= now() - begin;
}

void CallerRunner::step() {
  begin_ = Clock::now();
  begin_step();
  try {
    for (std::size_t i = 0; i < plan_->instructions.size(); ++i) {
      timeline_.instructions[i] = {now(), now()};
      std::visit([&](const auto& what) { perform(i, what); }, plan_->instructions[i]);
    }
  } catch (...) {
    transfers_.clear();  // letting go of a transfer waits for its end
    throw;
  }
  timeline_.step = now();
  timeline_.exposed += timeline_.step;
}

Result<Extent> CallerRunner::between_steps(TensorId tensor, std::size_t bytes) const {
  if (tensor.index >= graph_.tensors.size()) {
    return Error{ErrorCode::invalid_argument, fmt::format("there is no tensor {}: the record has {}",
                                                          tensor.index, graph_.tensors.size())};
  }
  const Tensor& asked = graph_[tensor];
  if (bytes != asked.bytes.count) {
    return Error{ErrorCode::invalid_argument, fmt::format("tensor {} has {} bytes and {} were given",
                                                          asked.name, asked.bytes.count, bytes)};
  }
  for (const Alloc& region : plan_->start) {
    if (region.tensor != tensor || region.tier == kFast) continue;
    return Extent{numbers_[region.tier.index], region.offset,
                  round_up(asked.bytes, machine_[region.tier].granularity)};
  }
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("tensor {} starts steps in memory of the caller: its bytes are there", asked.name)};
}

Result<void> CallerRunner::write(TensorId tensor, std::span<const std::byte> from) {
  const auto to = between_steps(tensor, from.size());
  if (!to) return to.error();
  if (!from.empty()) mover_->move({{borrowed_extent({0}, from.data(), {from.size()}), *to}});
  return {};
}

Result<void> CallerRunner::read(TensorId tensor, std::span<std::byte> to) {
  auto from = between_steps(tensor, to.size());
  if (!from) return from.error();
  from->bytes = {to.size()};
  if (!to.empty()) mover_->move({{*from, borrowed_extent({0}, to.data(), {to.size()})}});
  return {};
}

}  // namespace terrace
