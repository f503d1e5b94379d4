// SPDX-License-Identifier: Apache-2.0
// The part of measuring that has operands outside tier 0: in all tiers of this computer that kernels can use
// in place (placements.hpp says which placements).
//
// Memory is one arena in each tier, within that tier's budget; a placement that does not fit there cannot be
// in a run either, and is left to KernelClock. So is all that lies in a tier which cannot be opened, and what
// is still to come when a kernel's time is up; the latter is remembered, so that later runs do not try again.
// Uses OpenMP's team; one thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "profile/kernel_benchmark.hpp"
#include "profile/measure.hpp"
#include "profile/placements.hpp"

namespace terrace {

/// A benchmark with tier 0 alone, in memory that is lent or the system's. Fails where there is none.
Result<KernelBenchmark> open_benchmark(const Backend& backend, const MeasureOptions& options, Bytes arena);

class PlacementBenchmarks {
 public:
  /// Borrows all but the compute key. pre: a valid machine; the budgets of MeasureOptions agree
  PlacementBenchmarks(const Backend& backend, const Graph& graph, const Machine& machine,
                      const MeasureOptions& options, std::string compute);

  /// Takes from the store what it knows of a kernel. pre: none of this key was added
  void add(const std::string& key, const Kernel& kernel);
  /// Returns how many kernels have a placement whose time is not known yet.
  std::size_t unknown() const;
  /// Measures them; `done` is called after each. Throws EnvironmentError where memory or a device fails.
  void measure(const std::function<void()>& done);
  /// All that is known of a kernel. pre: it was added
  std::vector<PlacedTime> times(const std::string& key) const;

 private:
  struct Wanted {
    OperandTiers tiers;
    std::string name;                ///< for the store
    std::optional<PlacedTime> time;  ///< none: not known yet; without samples: it was left out
  };
  struct Subject {
    std::string key;
    const Kernel* kernel;
    std::vector<Wanted> placements;

    bool is_known() const;
  };

  bool fits(const Kernel& kernel, const OperandTiers& tiers) const;
  std::string name_of(const OperandTiers& tiers) const;
  std::vector<Bytes> arenas() const;
  std::optional<KernelBenchmark> open() const;
  void open_further(KernelBenchmark& benchmark, TierId id, Bytes arena) const;
  void measure(KernelBenchmark& benchmark, Subject& subject) const;

  const Backend& backend_;
  const Graph& graph_;
  const Machine& machine_;
  const MeasureOptions& options_;
  const std::string compute_;
  std::vector<TierId> further_;
  std::vector<Subject> subjects_;
  std::unordered_map<std::string, std::size_t> numbers_;  ///< of subjects, by key
};

}  // namespace terrace
