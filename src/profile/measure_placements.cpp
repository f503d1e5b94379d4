// SPDX-License-Identifier: Apache-2.0
#include "profile/measure_placements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "profile/tier_sample.hpp"

namespace terrace {
namespace {

/// There are many placements, and what tells them apart is more than a tenth.
constexpr Effort kEffort{5, 0.1, Seconds{0.1}};

bool is_here(const MachineTier& tier) { return tier.addressable && !tier.spec.empty(); }

std::vector<TierId> further_tiers(const Machine& machine, const std::vector<Bytes>& budgets) {
  std::vector<TierId> further;
  for (std::uint32_t i = 1; i < budgets.size(); ++i) {
    if (is_here(machine.tiers[i]) && budgets[i] > Bytes{}) further.push_back({i});
  }
  return further;
}

Result<std::unique_ptr<Tier>> open_sample(const MachineTier& tier, Bytes arena) {
  const auto spec = parse_tier_spec(tier.spec);
  if (!spec) return spec.error();
  const auto sample = sample_of(*spec, arena);
  if (!sample) return sample.error();
  auto opened = open_tier(*sample);
  if (opened && (*opened)->memory() == nullptr) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("kernels cannot use {} in place: calibrate this computer again", tier.spec)};
  }
  return opened;
}

}  // namespace

Result<KernelBenchmark> open_benchmark(const Backend& backend, const MeasureOptions& options, Bytes arena) {
  if (!options.lend) return KernelBenchmark::open(backend, arena);
  auto memory = options.lend({0}, arena);
  if (!memory) return memory.error();
  return KernelBenchmark(backend, *std::move(memory));
}

PlacementBenchmarks::PlacementBenchmarks(const Backend& backend, const Graph& graph, const Machine& machine,
                                         const MeasureOptions& options, std::string compute)
    : backend_(backend), graph_(graph), machine_(machine), options_(options), compute_(std::move(compute)) {
  const std::vector<Bytes>& budgets = options.tier_budgets;
  if (budgets.empty()) return;
  check(budgets.size() == machine.tiers.size(), "there is a budget for each tier");
  further_ = further_tiers(machine, budgets);
  Bytes sum = budgets[0];
  for (const TierId tier : further_) sum += budgets[tier.index];
  check(sum <= options.budget, "the budgets of the tiers are within that of all memory");
}

bool PlacementBenchmarks::fits(const Kernel& kernel, const OperandTiers& tiers) const {
  const std::vector<Bytes> needed = benchmark_bytes(graph_, kernel, tiers);
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i] > round_down(options_.tier_budgets[i], machine_.tiers[i].granularity)) return false;
  }
  return true;
}

std::string PlacementBenchmarks::name_of(const OperandTiers& tiers) const {
  std::string name;
  for (const TierId tier : tiers) {
    if (!name.empty()) name += " | ";
    name += tier == TierId{0} ? "fast" : rates_key(parse_tier_spec(machine_[tier].spec).value());
  }
  return name;
}

void PlacementBenchmarks::add(const std::string& key, const Kernel& kernel) {
  Subject subject{key, &kernel, {}};
  for (OperandTiers& tiers : placements(kernel, further_)) {
    if (!fits(kernel, tiers)) continue;
    Wanted wanted{std::move(tiers), {}, {}};
    wanted.name = name_of(wanted.tiers);
    if (options_.store != nullptr) wanted.time = options_.store->find_placed(key, compute_, wanted.name);
    if (wanted.time) wanted.time->tiers = wanted.tiers;
    subject.placements.push_back(std::move(wanted));
  }
  check(numbers_.emplace(key, subjects_.size()).second, "kernels that are alike are measured once");
  subjects_.push_back(std::move(subject));
}

bool PlacementBenchmarks::Subject::is_known() const {
  return std::all_of(placements.begin(), placements.end(),
                     [](const Wanted& wanted) { return wanted.time.has_value(); });
}

std::size_t PlacementBenchmarks::unknown() const {
  return static_cast<std::size_t>(std::count_if(subjects_.begin(), subjects_.end(),
                                                [](const Subject& subject) { return !subject.is_known(); }));
}

std::vector<Bytes> PlacementBenchmarks::arenas() const {
  std::vector<Bytes> largest(machine_.tiers.size());
  for (const Subject& subject : subjects_) {
    for (const Wanted& wanted : subject.placements) {
      if (wanted.time) continue;
      const std::vector<Bytes> needed = benchmark_bytes(graph_, *subject.kernel, wanted.tiers);
      for (std::size_t i = 0; i < needed.size(); ++i) largest[i] = std::max(largest[i], needed[i]);
    }
  }
  return largest;
}

void PlacementBenchmarks::open_further(KernelBenchmark& benchmark, TierId id, Bytes arena) const {
  const Bytes whole = round_up(arena, machine_[id].granularity);
  auto tier = options_.lend ? options_.lend(id, whole) : open_sample(machine_[id], whole);
  if (tier) {
    benchmark.add(id, std::move(*tier));
  } else if (options_.note) {
    options_.note(fmt::format("times with operands in {} are computed, not measured: {}", machine_[id].name,
                              tier.error().message));
  }
}

std::optional<KernelBenchmark> PlacementBenchmarks::open() const {
  const std::vector<Bytes> largest = arenas();
  auto benchmark =
      open_benchmark(backend_, options_, std::min(options_.tier_budgets[0], largest[0] + flush_bytes()));
  if (!benchmark) {
    if (options_.note) options_.note(benchmark.error().message);
    return std::nullopt;
  }
  for (const TierId id : further_) {
    if (largest[id.index] > Bytes{}) open_further(*benchmark, id, largest[id.index]);
  }
  return std::move(*benchmark);
}

void PlacementBenchmarks::measure(KernelBenchmark& benchmark, Subject& subject) const {
  const auto begin = steady_clock().now();
  std::map<std::string, PlacedTime> measured;
  for (Wanted& wanted : subject.placements) {
    const auto is_open = [&](TierId id) { return benchmark.has(id); };
    if (wanted.time || !std::all_of(wanted.tiers.begin(), wanted.tiers.end(), is_open)) continue;
    const bool is_late = !measured.empty() && steady_clock().now() - begin >= options_.placement_time;
    wanted.time = is_late ? PlacedTime{} : benchmark.measure(graph_, *subject.kernel, wanted.tiers, kEffort);
    measured[wanted.name] = *wanted.time;
  }
  if (options_.store != nullptr && !measured.empty())
    options_.store->save_placed(subject.key, compute_, measured);
}

void PlacementBenchmarks::measure(const std::function<void()>& done) {
  if (unknown() == 0) return;
  auto benchmark = open();
  if (!benchmark) return;
  for (Subject& subject : subjects_) {
    if (subject.is_known()) continue;
    measure(*benchmark, subject);
    done();
  }
}

std::vector<PlacedTime> PlacementBenchmarks::times(const std::string& key) const {
  std::vector<PlacedTime> known;
  for (const Wanted& wanted : subjects_[numbers_.at(key)].placements) {
    if (wanted.time && wanted.time->samples > 0) known.push_back(*wanted.time);
  }
  return known;
}

}  // namespace terrace
