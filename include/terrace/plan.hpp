// A plan: a straight-line program that runs one step of a graph inside a budget. Plain data.
//
//   region     the bytes of one tensor in one tier: at most one at a time for each pair. It takes the
//              tensor's bytes rounded up to the tier's granularity, begins on that granularity and lies
//              within the tier's budget; an empty tensor has empty regions
//   value      what a region holds: a tensor has one before the step, if it outlives steps, and each write
//              of the graph's own order makes the next
//   ticket     names a transfer; each is used once
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
#include <filesystem>
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

/// Ends a region. No transfer uses it.
struct Free {
  TensorId tensor;
  TierId tier;
  bool operator==(const Free&) const = default;
};

/// Starts a transfer over a link of the machine: each tensor's value to the region it has in the other tier.
/// Several tensors lie side by side in both tiers, in this order; where granularities differ, so does the
/// padding between them. Until its wait the sources are not written or freed, the destinations not used.
struct Copy {
  std::vector<TensorId> tensors;
  TierId from, to;
  std::uint32_t ticket = 0;
  bool operator==(const Copy&) const = default;
};

/// From here on the transfer is complete.
struct Wait {
  std::uint32_t ticket = 0;
  bool operator==(const Wait&) const = default;
};

/// Runs a kernel. A second run of the same is recomputation.
struct Run {
  KernelId kernel;
  std::uint32_t variant = 0;  ///< where it needs no workspace, none is allocated for the run
  std::vector<TierId> tiers;  ///< of its inputs, its outputs and its workspace, in this order
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

std::string fingerprint(const Plan& plan);  ///< of all of it but the remark

/// One line for a person: `copy relu1, bn1 fast > disk #12`, with the names of the graph and the machine. Of
/// a kernel: `run conv1 as direct (x fast, w fast, > y fast, ~ scratch fast)`. Any plan has a text, a wrong
/// one, too.
std::string to_text(const Instruction& instruction, const Graph& graph, const Machine& machine);
std::string to_text(const Plan& plan, const Graph& graph, const Machine& machine);

/// Format: docs/formats/plan.md. Reading what was written gives the same plan. Reading checks the form only;
/// whether the plan is safe is for `verify` to say.
/// pre: names are UTF-8, times finite and not negative, offsets and bytes below 2^63
std::string to_json(const Plan& plan);
Result<Plan> plan_from_json(std::string_view text);
Result<Plan> read_plan(const std::filesystem::path& path);
/// Written atomically. Throws ResultError where the path cannot be written to, EnvironmentError where the
/// disk is full or fails.
void write_plan(const Plan& plan, const std::filesystem::path& path);

}  // namespace terrace
