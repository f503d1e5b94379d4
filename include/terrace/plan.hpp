// SPDX-License-Identifier: Apache-2.0
// A plan: a straight-line program that runs one step of a graph inside a budget. Plain data.
//
//   region     the bytes of one tensor in one tier: at most one at a time for each pair. It takes the
//              tensor's bytes rounded up to the tier's granularity, begins on that granularity and lies
//              within the tier's budget; an empty tensor has empty regions
//   value      what a region holds: a tensor has one before the step, if it outlives steps, and each write
//              of the graph's own order makes the next
//   lane       the queue of one engine, or of one link: it works in the order of issue, one thing at a time,
//              beside all other lanes
//   ticket     names a transfer or a run of a kernel, and stands for its end; each is used once
//
// Instructions are issued one after the other. Alloc and free take effect when they are issued, a wait is
// done when its ticket is complete, and a run without a ticket when its kernel is; only then comes the next.
// A copy, and a run with a ticket, is put in the queue of its lane, and the next instruction is issued at
// once. It starts when everything that was put there before it is complete, and every ticket it is to start
// `after`; until then it holds up its own lane and nothing else. What has ended is known where a wait, a run
// without a ticket or an `after` says so: the end of one thing implies the end of all that was before it on
// its lane, of all it came after, and of all that was known to have ended when it was issued. Whatever lanes
// do that nothing puts in order may happen in any order and at the same time. A plan without tickets of runs
// and without `after` has one lane of kernels, as its instructions stand.
//
// A step starts with the regions of `start`: those of persistent tensors, at least one each, and one of every
// other input, in an addressable tier, where it is filled before the step. It ends with exactly those again,
// the persistent ones with the last value of their tensor, beside regions of results: each result has one in
// an addressable tier, and all it has hold its last value. What inputs hold then does not matter.
//
// Kernels may run in any order and again, as long as each reads, in the tiers its instruction states, the
// values it reads in the graph's order. It leaves new values in the tiers stated for its outputs and writes
// them whole; regions of the same tensors in other tiers keep the values they have. A tensor that a kernel
// reads and writes has one tier stated for both. A workspace is undefined before and after.
//
// Three interpreters share this definition and nothing else: verify (verify.hpp), simulate (simulate.hpp) and
// the trainer (trainer.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/graph.hpp"
#include "terrace/machine.hpp"
#include "terrace/result.hpp"

namespace terrace {

/// Makes a region; what it holds is undefined. The tensor has none in that tier.
struct Alloc {
  TensorId tensor;
  TierId tier;
  std::uint64_t offset = 0;
  bool operator==(const Alloc&) const = default;
};

/// Ends a region. Everything that uses it is known to have ended.
struct Free {
  TensorId tensor;
  TierId tier;
  bool operator==(const Free&) const = default;
};

/// Starts a transfer over a link of the machine: each tensor's value to the region it has in the other tier.
/// Several tensors lie side by side in both tiers, in this order; where granularities differ, so does the
/// padding between them. Until it is known to have ended the sources are not written or freed, the
/// destinations not used.
struct Copy {
  std::vector<TensorId> tensors;
  TierId from, to;
  std::uint32_t ticket = 0;
  std::vector<std::uint32_t> after = {};  ///< tickets issued before, which it starts after
  bool operator==(const Copy&) const = default;
};

/// From here on the transfer or the run is complete. A ticket is waited for at most once; at the end of the
/// step all are known to be complete.
struct Wait {
  std::uint32_t ticket = 0;
  bool operator==(const Wait&) const = default;
};

/// Runs a kernel on an engine, which reaches all tiers stated. A second run of the same is recomputation.
/// Until it is known to have ended nothing else writes what it reads or uses what it writes.
struct Run {
  KernelId kernel;
  std::uint32_t variant = 0;  ///< where it needs no workspace, none is allocated for the run
  std::vector<TierId> tiers;  ///< of its inputs, its outputs and its workspace, in this order
  EngineId engine = {};
  std::optional<std::uint32_t> ticket = {};  ///< without one the next instruction comes when it has ended
  std::vector<std::uint32_t> after = {};     ///< as of a copy
  bool operator==(const Run&) const = default;
};

using Instruction = std::variant<Alloc, Free, Copy, Wait, Run>;

struct Traffic {
  TierId from, to;
  Bytes bytes;
  bool operator==(const Traffic&) const = default;
};

/// What a plan is expected to do, for one step.
struct Prediction {
  Seconds step{0};
  Seconds bound{0};    ///< no plan for this graph, machine and budget is faster
  Seconds exposed{0};  ///< time in which no kernel ran
  std::vector<Traffic> moved;
  bool operator==(const Prediction&) const = default;
  /// (step - bound) / bound
  double gap() const { return bound.count() > 0 ? step / bound - 1 : 0; }
};

struct Plan {
  std::string planner;
  std::string remark;                   ///< what its planner says of it, for a person; may be empty
  std::string graph, machine, profile;  ///< fingerprints of what it was made for
  std::vector<Bytes> budget;            ///< one for each tier
  std::vector<Alloc> start;             ///< regions that outlive the step
  std::vector<Instruction> instructions;
  Prediction prediction;
  bool operator==(const Plan&) const = default;
};

/// Returns whether kernels run on one lane alone, in the order of the instructions, and no transfer waits for
/// anything but its link: true of every plan without an engine, a run's ticket or `after`.
bool has_one_lane(const Plan& plan);

std::string fingerprint(const Plan& plan);  ///< of all of it but the remark

/// One line for a person: `copy relu1, bn1 fast > disk #12`, with the names of the graph and the machine. Of
/// a kernel: `run conv1 as direct (x fast, w fast, > y fast, ~ scratch fast)`, on another engine than the
/// first one `run adam1 (..) on cpu1 #13 after #11, #12`. Any plan has a text, a wrong one, too.
std::string to_text(const Instruction& instruction, const Graph& graph, const Machine& machine);
std::string to_text(const Plan& plan, const Graph& graph, const Machine& machine);

/// Format: docs/formats/plan.md. Reading what was written gives the same plan. Reading checks the form only;
/// whether the plan is safe is for `verify` to say.
/// pre: names are UTF-8, times finite and not negative, offsets and bytes below 2^63
std::string to_json(const Plan& plan);
Result<Plan> plan_from_json(std::string_view text);

}  // namespace terrace
