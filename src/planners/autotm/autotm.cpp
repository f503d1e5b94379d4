// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/autotm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "migration/fit.hpp"
#include "optim/cbc.hpp"
#include "planners/autotm/model/write.hpp"
#include "planners/autotm/solver/fast.hpp"

namespace terrace {
namespace autotm {
namespace {

/// Returns whether a tensor takes as much of each pool as the instance says.
bool counts_exactly(const Machine& machine, const Instance& instance) {
  const std::vector<Pool> pools = instance.pools();
  return std::all_of(pools.begin(), pools.end(), [&](const Pool& pool) {
    return machine[pool.tier].granularity == machine.tiers[0].granularity;
  });
}

constexpr int kAttempts = 8;
/// How many iterations the fast solver takes: enough for one percent in most networks, and under a second for
/// small graphs.
constexpr std::uint64_t kIterations = 20'000;

std::string name_of(Formulation formulation) {
  switch (formulation) {
    case Formulation::fixed:
      return "autotm-static";
    case Formulation::synchronous:
      return "autotm-sync";
    case Formulation::asynchronous:
      return "autotm-async";
  }
  return {};
}

std::optional<std::string> option(const PlanRequest& request, const std::string& name) {
  const auto found = request.options.find(name);
  return found == request.options.end() ? std::nullopt : std::optional(found->second);
}

Error wrong_option(const char* name, const char* wanted, const std::string& given) {
  return {ErrorCode::invalid_argument, fmt::format("{} is {}, and '{}' is given", name, wanted, given)};
}

/// Reads a number that is not below zero.
std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

FastOptions fast_options(const PlanRequest& request, const SolverOptions& options) {
  const double gap = options.limits.gap;
  FastOptions fast{.gap = gap, .iterations = kIterations, .work = kFastWork, .stop = request.stop};
  fast.seed = request.seed;
  fast.branches = !options.iterations;
  fast.threads = options.iterations ? 1 : 2;
  if (options.iterations) {
    fast.iterations = *options.iterations;
    fast.work = std::numeric_limits<double>::infinity();
  }
  return fast;
}

Result<Solved> solve_by_prices(const PlanRequest& request, const Instance& instance,
                               const SolverOptions& options) {
  auto found = solve_fast(instance, fast_options(request, options));
  if (found) return Solved{std::move(found->solution), found->time, found->bound, found->within_gap};
  return found.error().code == ErrorCode::too_large ? explain_infeasible(request, instance) : found.error();
}

/// Solves and writes, with less memory every time until the packed regions fit.
class Attempts {
 public:
  Attempts(const PlanRequest& request, Formulation formulation, SolverOptions options)
      : request_(request), formulation_(formulation), options_(options) {}

  Result<Planned> run() {
    std::vector<Bytes> capacities = request_.budget;
    Result<Plan> plan = Error{ErrorCode::too_large, {}};
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      auto draft = solve(capacities);
      // What fails at first is the reason; what fails with less memory than there is proves nothing.
      if (!draft && attempt == 0) plan = draft.error();
      if (!draft) break;
      const bool more = lower(capacities, draft->needed);
      plan = fitted(request_, *std::move(draft));
      if (plan || !more) break;
    }
    // A build without the solver is no reason to plan without one.
    const bool could_solve = options_.solver == Solver::fast || optim::has_cbc();
    if (!plan && formulation_ != Formulation::fixed && could_solve) resort(plan);
    if (!plan) return plan.error();
    planned_.plan = *std::move(plan);
    return std::move(planned_);
  }

 private:
  /// Lowers the capacity of each tier that was packed too full by as much. Returns whether there was one and
  /// another solve may do better: not where it is the slowest tier, unless there is one after the second.
  bool lower(std::vector<Bytes>& capacities, const std::vector<Bytes>& needed) const {
    bool lowered = false;
    for (std::size_t tier = 0; tier < capacities.size(); ++tier) {
      if (needed[tier] <= request_.budget[tier]) continue;
      if (tier == slow_.index && (three_tiers_ || tier + 1 == capacities.size())) return false;
      const Bytes over = needed[tier] - request_.budget[tier];
      if (over >= capacities[tier]) return false;
      capacities[tier] -= over;
      lowered = true;
    }
    return lowered;
  }

  Result<Draft> solve(const std::vector<Bytes>& capacities) {
    const auto instance = make_instance(request_, formulation_, capacities);
    if (!instance) return instance.error();
    slow_ = instance->slow;
    three_tiers_ = !instance->between.empty();
    const auto solved = options_.solver == Solver::cbc
                            ? solve_exactly(request_, *instance, options_.linking, options_.limits)
                            : solve_by_prices(request_, *instance, options_);
    ++planned_.solves;
    if (!solved) return solved.error();
    planned_.objective = solved->objective;
    // With less memory than there is, no bound holds, nor where a tensor counts for more than it takes.
    if (capacities == request_.budget && counts_exactly(request_.machine, *instance))
      planned_.bound = solved->bound;
    planned_.proven = solved->proven;
    return write_solution(request_, *instance, solved->solution, name_of(formulation_));
  }

  /// Takes the last resort where no solved plan fits: nothing stays in fast memory between kernels. Where
  /// that does not fit either, the first solve's reason stands, if it has one: it says more than that packing
  /// failed.
  void resort(Result<Plan>& plan) {
    auto resorted =
        plan_to_fit(request_, StepUses(request_.graph), name_of(formulation_), [](Bytes) -> Result<Draft> {
          return Error{ErrorCode::too_large, {}};
        });
    if (!resorted && planned_.objective.count() > 0) plan = resorted.error();
    if (!resorted) return;
    planned_.objective = planned_.bound = Seconds{0};
    planned_.proven = false;
    plan = std::move(resorted);
  }

  const PlanRequest& request_;
  Formulation formulation_;
  SolverOptions options_;
  TierId slow_;               ///< of the latest instance
  bool three_tiers_ = false;  ///< likewise
  Planned planned_;
};

/// Returns what the program says of its plan; `gap` was asked for.
std::string remark_of(const Planned& planned, double gap) {
  if (planned.objective.count() <= 0)
    return "nothing that was solved fits, so everything moves for every use";
  const std::string again =
      planned.solves > 1 ? fmt::format(", in solve {}, with less memory so that it fits", planned.solves)
                         : "";
  if (planned.bound.count() <= 0)
    return fmt::format("its program's {:.4f} s{}", planned.objective.count(), again);
  return fmt::format("its program's {:.4f} s{}, {:.2f}% above the {:.4f} s proven for it, {}{:g}% asked",
                     planned.objective.count(), again, 100 * (planned.objective / planned.bound - 1),
                     planned.bound.count(), planned.proven ? "" : "where a limit came, ", 100 * gap);
}

Result<Plan> plan_only(const PlanRequest& request, Formulation formulation) {
  auto planned = plan_by_program(request, formulation);
  if (!planned) return planned.error();
  planned->plan.remark = remark_of(*planned, solver_options(request)->limits.gap);
  return std::move(planned->plan);
}

}  // namespace

Result<SolverOptions> solver_options(const PlanRequest& request) {
  SolverOptions options;
  if (const auto solver = option(request, "solver")) {
    if (*solver != "cbc" && *solver != "fast") return wrong_option("solver", "fast or cbc", *solver);
    if (*solver == "cbc") options.solver = Solver::cbc;
  }
  if (const auto linking = option(request, "linking")) {
    if (*linking != "tight" && *linking != "paper")
      return wrong_option("linking", "tight or paper", *linking);
    options.linking = *linking == "tight" ? Linking::tight : Linking::paper;
  }
  if (const auto gap = option(request, "gap")) {
    const auto value = number(*gap);
    if (!value) return wrong_option("gap", "a share such as 0.01", *gap);
    options.limits.gap = *value;
  }
  if (const auto time = option(request, "seconds")) {
    const auto value = number(*time);
    if (!value) return wrong_option("seconds", "a number such as 60", *time);
    options.limits.time = Seconds{*value};
  }
  if (const auto iterations = option(request, "iterations")) {
    const auto value = number(*iterations);
    if (!value) return wrong_option("iterations", "a number such as 300", *iterations);
    options.iterations = static_cast<std::uint64_t>(std::min(*value, 1e9));
  }
  return options;
}

Result<Planned> plan_by_program(const PlanRequest& request, Formulation formulation) {
  const auto options = solver_options(request);
  if (!options) return options.error();
  return Attempts(request, formulation, *options).run();
}

}  // namespace autotm

Result<Plan> plan_autotm_static(const PlanRequest& request) {
  return autotm::plan_only(request, autotm::Formulation::fixed);
}

Result<Plan> plan_autotm_sync(const PlanRequest& request) {
  return autotm::plan_only(request, autotm::Formulation::synchronous);
}

Result<Plan> plan_autotm_async(const PlanRequest& request) {
  return autotm::plan_only(request, autotm::Formulation::asynchronous);
}

}  // namespace terrace
