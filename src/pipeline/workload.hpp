// Workload: a training graph on a machine, ready to be planned.
//
// The machine is this computer (`this`, measured once and kept in the user's cache folder), a file of a
// machine, or one of the papers' machines. On this computer, and on a file's that was measured here, the
// graph is compiled, so that its plans can be carried out; for other machines it is only scheduled.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "terrace/machine.hpp"
#include "terrace/trainer.hpp"

namespace terrace {

/// Told what happens now, from the calling thread.
using Told = std::function<void(const std::string&)>;

struct WorkloadRequest {
  const Graph& graph;                  ///< as build_model makes it
  unsigned threads = 0;                ///< that compute; 0: as many as this process can keep busy
  std::string machine = "this";        ///< or a preset's name, or a file
  std::vector<std::string> slow = {};  ///< of `this`: specs, the fastest first; none: default_slow_tier()
  Told progress = [](const std::string&) {};
};

struct Workload {
  Program program;  ///< without offsets and arena where it is not compiled
  Machine machine;
  bool here = false;  ///< the graph is compiled and the machine is this computer: plans can be carried out
  Bytes peak{};       ///< the most bytes live at once in the graph as it was asked for
  std::size_t split_kernels = 0;  ///< of that graph, that are worked on in parts to fit
  std::string not_split = {};     ///< why a kernel that does not fit is left as it is; empty: there is none

  const Graph& graph() const { return program.graph; }
};

/// The machine that is asked for. Fails where there is none; takes up to a minute where this computer was not
/// measured before.
Result<Machine> find_machine(const WorkloadRequest& request);

/// Fails with one sentence where there is no such machine, tier or kernel; throws EnvironmentError where a
/// disk fails. Takes up to a minute where this computer was not measured before.
Result<Workload> prepare(const WorkloadRequest& request);

/// A workload for which a plan exists in so much fast memory: as it is where one does already, else with
/// kernels split. Where splitting does not help enough, the one that needs least. pre: `prepare` made
/// `workload` from the same request
Result<Workload> fit(const WorkloadRequest& request, Workload workload, Bytes fast);

/// The same for a plan that was made before: its graph is compiled, or only scheduled, as the plan's was.
/// `fast` is what it was planned for, without which a graph whose kernels were split is not found. Fails
/// where it is neither.
Result<Workload> prepare_for(const Plan& plan, const WorkloadRequest& request, std::string_view fast = {});

/// What each tier gives: `fast` of the fastest (as fast_budget.hpp says; empty: all of it), all of the
/// others, but of a disk here no more than is free.
Result<std::vector<Bytes>> budget_of(const Workload& workload, std::string_view fast);

/// $XDG_CACHE_HOME/terrace or ~/.cache/terrace; made where it is missing.
Result<std::filesystem::path> cache_folder();

/// A file in the cache folder, as large as its disk: only what a plan needs of it is ever taken.
Result<TierSpec> default_slow_tier();

}  // namespace terrace
