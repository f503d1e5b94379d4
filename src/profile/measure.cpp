// SPDX-License-Identifier: Apache-2.0
#include "profile/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "backends/processor.hpp"
#include "base/check.hpp"
#include "graph/tokens.hpp"
#include "graph/variant.hpp"
#include "profile/computer_name.hpp"
#include "profile/kernel_benchmark.hpp"
#include "profile/kernel_key.hpp"
#include "profile/measure_placements.hpp"
#include "profile/roofline.hpp"
#include "terrace/graph.hpp"
#include "terrace/version.hpp"

namespace terrace {
namespace {

using Times = std::unordered_map<std::string, PlacedTime>;

/// A kernel that is measured for all kernels of the same key.
struct Candidate {
  std::string key;
  const Kernel* kernel;
};

PlacedTime with_tiers(PlacedTime time, const Kernel& kernel) {
  time.tiers.assign(operand_count(kernel), TierId{0});
  return time;
}

Result<void> check_measurable(const Backend& backend, const Graph& graph, const Kernel& kernel,
                              Bytes budget) {
  if (!backend.can_run(kernel)) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("kernel '{}' is foreign and cannot be run here: estimate its time instead", kernel.name)};
  }
  const Bytes needed = benchmark_bytes(graph, kernel);
  if (needed <= budget) return {};
  return Error{ErrorCode::too_large,
               fmt::format("measuring kernel '{}' needs {} for its operands, and the budget is {}: raise the "
                           "budget by {}",
                           kernel.name, readable(needed), readable(budget), to_string(needed - budget))};
}

/// A variant of a kernel as a kernel of its own: what is measured is one of these.
struct Subject {
  Kernel kernel;
  std::string key;
  bool fits = true;  ///< in the memory for measuring
};
using Subjects = std::vector<std::vector<Subject>>;  ///< by kernel, then by variant

Subjects subjects_of(const Backend& backend, const Graph& graph) {
  Subjects subjects;
  for (const Kernel& kernel : graph.kernels) {
    auto& variants = subjects.emplace_back();
    for (std::uint32_t i = 0; i < variant_count(kernel); ++i) {
      Kernel one = as_variant(kernel, i);
      std::string key = kernel_key(backend, graph, one);
      variants.push_back({std::move(one), std::move(key)});
    }
  }
  return subjects;
}

/// Fails where no variant of a kernel fits; those that do not where another does are marked.
Result<void> find_fitting(const Backend& backend, const Graph& graph, std::vector<Subject>& variants,
                          Bytes budget) {
  std::optional<Error> reason;
  bool any = false;
  for (Subject& subject : variants) {
    const auto measurable = check_measurable(backend, graph, subject.kernel, budget);
    subject.fits = static_cast<bool>(measurable);
    any = any || subject.fits;
    if (!subject.fits && !reason) reason = measurable.error();
  }
  if (!any) return *reason;
  return {};
}

/// Returns how much memory tier 0 may take. Memory of the system stands for all tiers; what is lent belongs
/// to one.
Bytes most_in_first(const MeasureOptions& options) {
  return options.lend ? options.tier_budgets[0] : options.budget;
}

/// Fills in what the store knows; returns the rest.
Result<std::vector<Candidate>> candidates(const Backend& backend, const Graph& graph,
                                          const MeasureOptions& options, const std::string& compute,
                                          Subjects& subjects, Times& times, PlacementBenchmarks& elsewhere) {
  std::vector<Candidate> unknown;
  std::unordered_set<std::string> seen;
  const Bytes most = most_in_first(options);
  for (auto& variants : subjects) {
    // Whatever runs in order to be measured changes the state that a token stands for.
    if (has_token(graph, variants.front().kernel)) {
      for (Subject& subject : variants) subject.fits = false;
      continue;
    }
    const auto fitting = find_fitting(backend, graph, variants, most);
    if (!fitting && !options.lend) return fitting.error();
    for (const auto& [kernel, key, fits] : variants) {
      if (!fits || !seen.insert(key).second) continue;
      elsewhere.add(key, kernel);
      const auto known = options.store != nullptr ? options.store->find(key, compute) : std::nullopt;
      if (known) {
        times[key] = with_tiers(*known, kernel);
      } else {
        unknown.push_back({key, &kernel});
      }
    }
  }
  return unknown;
}

Result<void> measure_all(const Backend& backend, const Graph& graph, const std::vector<Candidate>& unknown,
                         const MeasureOptions& options, const std::string& compute, Times& times,
                         const std::function<void()>& done) {
  if (unknown.empty()) return {};
  Bytes largest;
  for (const Candidate& one : unknown) largest = std::max(largest, benchmark_bytes(graph, *one.kernel));
  auto benchmark =
      open_benchmark(backend, options, std::min(most_in_first(options), largest + flush_bytes()));
  if (!benchmark) return benchmark.error();
  for (const Candidate& one : unknown) {
    const PlacedTime& time = times[one.key] = benchmark->measure(graph, *one.kernel);
    if (options.store != nullptr) options.store->save(one.key, compute, time);
    done();
  }
  return {};
}

Profile assembled(const Graph& graph, const Machine& machine, const Subjects& subjects, const Times& times,
                  const PlacementBenchmarks& elsewhere, ProfileStore* store, const std::string& compute) {
  // A variant that is too large to be measured is too large to be planned with: its time is the machine's.
  Profile profile = estimate(graph, machine);
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
    const auto& variants = subjects[k];
    const std::size_t operands = operand_count(graph.kernels[k]);
    for (std::size_t i = 0; i < variants.size(); ++i) {
      if (!variants[i].fits) continue;
      std::vector<PlacedTime> places = elsewhere.times(variants[i].key);
      places.insert(places.begin(), times.at(variants[i].key));
      // A variant that needs no workspace was timed without that operand: it counts as being in tier 0.
      for (PlacedTime& placed : places) placed.tiers.resize(operands, TierId{0});
      profile.kernels[k].variants[i] = std::move(places);
    }
    if (store != nullptr) profile.kernels[k].operands = store->find_accesses(variants[0].key, compute);
  }
  return profile;
}

}  // namespace

std::string compute_key(const Backend& backend, unsigned threads) {
  return fmt::format("{}, {} threads, {}, Terrace {}", computer_name().processor, threads, backend.version(),
                     TERRACE_VERSION);
}

Result<Profile> measure(const Graph& lowered, const Machine& machine, const MeasureOptions& options) {
  check(options.threads > 0, "at least one thread measures");
  const Result<std::shared_ptr<const Backend>> processor =
      options.backend == nullptr ? processor_backend() : std::shared_ptr<const Backend>();
  if (!processor) return processor.error();
  const Backend& backend = options.backend != nullptr ? *options.backend : **processor;
  backend.use_threads(options.threads);
  const std::string compute = compute_key(backend, options.threads);
  Subjects subjects = subjects_of(backend, lowered);
  Times times;
  PlacementBenchmarks elsewhere(backend, lowered, machine, options, compute);
  const auto unknown = candidates(backend, lowered, options, compute, subjects, times, elsewhere);
  if (!unknown) return unknown.error();
  MeasureProgress progress{0, unknown->size() + elsewhere.unknown()};
  const auto done = [&] {
    ++progress.done;
    if (options.progress) options.progress(progress);
  };
  if (auto measured = measure_all(backend, lowered, *unknown, options, compute, times, done); !measured)
    return measured.error();
  elsewhere.measure(done);
  return assembled(lowered, machine, subjects, times, elsewhere, options.store, compute);
}

}  // namespace terrace
