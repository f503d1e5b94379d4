// SPDX-License-Identifier: Apache-2.0
// Workload: a training graph on a machine, ready to be planned. The first half of the pipeline; pipeline.hpp
// is the second, and session.hpp does all of it in order.
//
// The machine is this computer (`this`, measured once and kept in the user's cache folder), a file of a
// machine, or one of the papers' machines. On this computer, and on a machine of a file that was measured
// here, the graph is compiled, so that its plans can be carried out; for other machines it is only scheduled.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/machine.hpp"
#include "terrace/plan.hpp"
#include "terrace/program.hpp"
#include "terrace/progress.hpp"

namespace terrace {

struct WorkloadRequest {
  const Graph& graph;                  ///< as build_model or Net makes it; it outlives the request
  unsigned threads = 0;                ///< that compute; 0: as many as this process can keep busy
  std::string machine = "this";        ///< or a preset's name, or a file
  std::vector<std::string> slow = {};  ///< of `this`: specs, the fastest first; none: default_slow_tier()
  ProgressSink progress = no_progress;
  bool measure_again = false;  ///< measures `this` even if it was measured before
  /// Whose kernels run here, such as callbacks (foreign.hpp); none: this processor's. Kernels of others are
  /// not split.
  std::shared_ptr<const Backend> backend = {};
};

struct Workload {
  Program program;  ///< without offsets and arena where it is not compiled
  Machine machine;
  bool here = false;  ///< the graph is compiled and the machine is this computer: plans can be carried out
  Bytes peak{};       ///< the most bytes live at once in the graph as it was asked for
  std::size_t split_kernels = 0;  ///< how many kernels of that graph are worked on in parts, in order to fit
  std::string not_split = {};     ///< why a kernel that does not fit is left as it is; empty: there is none

  const Graph& graph() const { return program.graph; }
};

/// The machine that a request names. Fails with one sentence where there is no such machine or tier; throws
/// EnvironmentError where a disk fails. Takes up to a minute where this computer was not measured before.
Result<Machine> machine_of(const WorkloadRequest& request);

/// Compiles or schedules the graph for a machine. Fails with one sentence where a kernel is unknown.
/// pre: machine_of(request) gave the machine
Result<Workload> prepare(const WorkloadRequest& request, Machine machine);
/// Prepares the graph for the machine that the request names; fails as machine_of does, too.
Result<Workload> prepare(const WorkloadRequest& request);

/// A workload for which a plan exists in so much fast memory: as it is where one does already, else with
/// kernels split. Where splitting does not help enough, the one that needs least. pre: `prepare` made
/// `workload` from the same request
Result<Workload> fit(const WorkloadRequest& request, Workload workload, Bytes fast);

/// The workload of a plan that was made before: its graph is compiled, or only scheduled, as the plan's was.
/// `fast` is what it was planned for, without which a graph whose kernels were split is not found. Fails
/// where the plan fits neither graph.
Result<Workload> prepare_for(const Plan& plan, const WorkloadRequest& request, std::string_view fast = {});

/// Returns how many bytes each tier gives: `fast` of the fastest, all of the others, but of a disk here no
/// more than is free. `fast` is an amount such as `2GiB`, or a share of the graph's peak such as `20%`;
/// empty: all of the fastest tier. Fails with one sentence where it is neither or too much.
Result<std::vector<Bytes>> budget_of(const Workload& workload, std::string_view fast);

/// $XDG_CACHE_HOME/terrace or ~/.cache/terrace; made where it is missing.
Result<std::filesystem::path> cache_folder();

/// A file in the cache folder, as large as its disk: only what a plan needs of it is ever taken.
Result<TierSpec> default_slow_tier();

}  // namespace terrace
