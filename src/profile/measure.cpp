#include "profile/measure.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/check.hpp"
#include "profile/computer_name.hpp"
#include "profile/kernel_key.hpp"
#include "profile/measure_placements.hpp"
#include "profile/roofline.hpp"
#include "profile/trial.hpp"
#include "terrace/plan.hpp"
#include "terrace/version.hpp"

namespace terrace {
namespace {

using Times = std::unordered_map<std::string, PlacedTime>;

/// One of those that are alike, to be measured for all of them.
struct Candidate {
  std::string key;
  const Kernel* kernel;
};

PlacedTime with_tiers(PlacedTime time, const Kernel& kernel) {
  time.tiers.assign(operand_count(kernel), TierId{0});
  return time;
}

Result<void> check_measurable(const Graph& graph, const Kernel& kernel, Bytes budget) {
  if (kernel.operation == Operation::custom) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("kernel '{}' is foreign and cannot be run here: estimate its time instead", kernel.name)};
  }
  check(kernel.variants.size() <= 1, "a lowered kernel has one implementation");
  const Bytes needed = trial_bytes(graph, kernel);
  if (needed <= budget) return {};
  return Error{ErrorCode::too_large,
               fmt::format("measuring kernel '{}' needs {} for its operands, and the budget is {}: raise the "
                           "budget by {}",
                           kernel.name, readable(needed), readable(budget), to_string(needed - budget))};
}

/// Fills in what the store knows; returns the rest.
Result<std::vector<Candidate>> candidates(const Graph& graph, const MeasureOptions& options,
                                          const std::string& compute, std::vector<std::string>& keys,
                                          Times& times, PlacementTrials& elsewhere) {
  std::vector<Candidate> unknown;
  std::unordered_set<std::string> seen;
  for (const Kernel& kernel : graph.kernels) {
    if (auto measurable = check_measurable(graph, kernel, options.budget); !measurable)
      return measurable.error();
    keys.push_back(kernel_key(graph, kernel));
    if (!seen.insert(keys.back()).second) continue;
    elsewhere.add(keys.back(), kernel);
    const auto known = options.store != nullptr ? options.store->find(keys.back(), compute) : std::nullopt;
    if (known) {
      times[keys.back()] = with_tiers(*known, kernel);
    } else {
      unknown.push_back({keys.back(), &kernel});
    }
  }
  return unknown;
}

Result<void> measure_all(const Graph& graph, const std::vector<Candidate>& unknown,
                         const MeasureOptions& options, const std::string& compute, Times& times,
                         const std::function<void()>& done) {
  if (unknown.empty()) return {};
  Bytes largest;
  for (const Candidate& one : unknown) largest = std::max(largest, trial_bytes(graph, *one.kernel));
  auto trial = Trial::open(std::min(options.budget, largest + flush_bytes()));
  if (!trial) return trial.error();
  for (const Candidate& one : unknown) {
    const PlacedTime& time = times[one.key] = trial->measure(graph, *one.kernel);
    if (options.store != nullptr) options.store->save(one.key, compute, time);
    done();
  }
  return {};
}

}  // namespace

std::string compute_key(unsigned threads) {
  const dnnl_version_t* library = dnnl_version();
  return fmt::format("{}, {} threads, oneDNN {}.{}.{} {}, Terrace {}", computer_name().processor, threads,
                     library->major, library->minor, library->patch, library->hash, TERRACE_VERSION);
}

Result<Profile> measure(const Graph& lowered, const Machine& machine, const MeasureOptions& options) {
  check(options.threads > 0, "at least one thread measures");
  omp_set_num_threads(static_cast<int>(options.threads));
  const std::string compute = compute_key(options.threads);
  std::vector<std::string> keys;
  Times times;
  PlacementTrials elsewhere(lowered, machine, options, compute);
  const auto unknown = candidates(lowered, options, compute, keys, times, elsewhere);
  if (!unknown) return unknown.error();
  MeasureProgress progress{0, unknown->size() + elsewhere.unknown()};
  const auto done = [&] {
    ++progress.done;
    if (options.progress) options.progress(progress);
  };
  if (auto measured = measure_all(lowered, *unknown, options, compute, times, done); !measured)
    return measured.error();
  elsewhere.measure(done);
  Profile profile{fingerprint(lowered), fingerprint(machine), {}};
  for (const std::string& key : keys) {
    std::vector<PlacedTime> places = elsewhere.times(key);
    places.insert(places.begin(), times.at(key));
    profile.kernels.push_back({{std::move(places)}});
    if (options.store != nullptr)
      profile.kernels.back().operands = options.store->find_accesses(key, compute);
  }
  return profile;
}

}  // namespace terrace
