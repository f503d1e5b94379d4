// Programs solved exactly and written as plans, for tests of what becomes of them.
#pragma once

#include <gtest/gtest.h>

#include "autotm/rig.hpp"
#include "optim/cbc.hpp"
#include "planners/autotm/model/program.hpp"
#include "planners/autotm/model/write.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace::autotm {

class WithCbc : public testing::Test {
 protected:
  void SetUp() override {
    if (!optim::has_cbc()) GTEST_SKIP() << "this build has no CBC";
  }
};

inline std::string describe(Formulation formulation, std::uint64_t seed) {
  return "formulation " + std::to_string(static_cast<int>(formulation)) + ", case " + std::to_string(seed);
}

/// A solution as a plan, and what the simulator says of it.
struct Written {
  Formulation formulation;
  Instance instance;
  Solved solved;
  Timeline timeline;
};

/// Shows what becomes of every formulation of a problem whose instance is wanted and has a solution, to a
/// percent. The verifier accepts the plan, which holds no more of any pool than the solution says.
template <class Wanted, class See>
void see_written(const Problem& given, std::uint64_t seed, const Wanted& wanted, const See& see) {
  const PlanRequest request = given.request();
  for (const Formulation formulation : kFormulations) {
    SCOPED_TRACE(describe(formulation, seed));
    auto instance = make_instance(request, formulation, request.budget[0]);
    if (!instance || !wanted(*instance)) continue;
    auto solved = solve_exactly(request, *instance, Linking::tight, {0.01, Seconds{600}});
    if (!solved) continue;
    Draft draft = write_solution(request, *instance, solved->solution, "test");
    draft.plan.budget = draft.needed;
    const auto found = violations(given.graph, given.machine, draft.plan);
    ASSERT_TRUE(found.empty()) << found[0].instruction << ": " << found[0].reason;
    const Timeline timeline = simulate(given.graph, given.machine, given.profile, draft.plan);
    for (const Pool& pool : instance->pools()) {
      const std::vector<Bytes> planned = occupancy(*instance, solved->solution, pool.tier);
      EXPECT_LE(timeline.peak[pool.tier.index], *std::max_element(planned.begin(), planned.end()));
      EXPECT_LE(timeline.peak[pool.tier.index], pool.capacity);
    }
    see(Written{formulation, *std::move(instance), *std::move(solved), timeline});
  }
}

}  // namespace terrace::autotm
