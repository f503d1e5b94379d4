// SPDX-License-Identifier: Apache-2.0
// Planners that are programs: they are asked, believed in nothing, and told apart from those that fail.
#include "record/outside_planner.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "record/small_record.hpp"
#include "terrace/lifetimes.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

class OutsidePlanner : public testing::Test {
 protected:
  PlanRequest request() const { return {record_.graph, record_.machine, record_.profile, record_.budget}; }

  /// A program of the shell.
  std::string program(const std::string& text) const {
    const auto path = folder_.path() / "mine";
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    chmod(path.c_str(), 0755);
    return "exec:" + path.string();
  }
  std::string failure(const std::string& planner) const {
    const auto plan = make_outside_plan(planner, request());
    EXPECT_FALSE(plan.ok());
    return plan.ok() ? "" : plan.error().message;
  }
  /// The program answers with this text, whatever it is asked.
  std::string answering(const std::string& text) const {
    std::ofstream(folder_.path() / "answer") << text;
    return program("cat > /dev/null; cat " + (folder_.path() / "answer").string());
  }

  const Record record_ = test::small_record();
  TemporaryFolder folder_;
};

const std::string kLru = "exec:" TERRACE_TESTS "/../examples/lru_planner.py";

TEST_F(OutsidePlanner, TheExampleMakesThePlanThatOurLruMakes) {
  std::size_t compared = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Graph graph = test::small_graph(seed);
    const Profile profile = estimate(graph, record_.machine);
    std::vector<Bytes> budget = record_.budget;
    for (const std::uint64_t percent : {40U, 60U, 80U, 95U}) {
      budget[0] = Lifetimes(graph).peak_bytes() / 100 * percent;
      const PlanRequest asked{graph, record_.machine, profile, budget};
      const Plan ours = make_plan("lru", asked).value();
      const auto made = make_outside_plan(kLru, asked);
      if (!made.ok()) continue;  // Ours has a last resort for budgets this small, which the example has not.
      const Plan& theirs = *made;
      ++compared;
      EXPECT_EQ(theirs.instructions.size(), ours.instructions.size()) << seed << ", " << percent;
      EXPECT_NEAR(theirs.prediction.step.count(), ours.prediction.step.count(),
                  1e-9 * ours.prediction.step.count());
      EXPECT_EQ(theirs.prediction.moved, ours.prediction.moved);
    }
  }
  EXPECT_GT(compared, 3U);
}

TEST_F(OutsidePlanner, ItsOwnOffsetsAreKept) {
  Plan plan = *record_.plan;
  plan.remark = "by heart";
  const auto made = make_outside_plan(answering(to_json(plan)), request());
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->instructions, plan.instructions);
  EXPECT_EQ(made->remark, "by heart");
  EXPECT_TRUE(made->planner.starts_with("exec:"));
  EXPECT_EQ(made->prediction.step, record_.plan->prediction.step);
}

TEST_F(OutsidePlanner, ALieIsRefusedWithTheViolation) {
  Plan plan = *record_.plan;
  std::erase_if(plan.instructions, [](const Instruction& one) {
    const auto* run = std::get_if<terrace::Run>(&one);
    return run != nullptr && run->kernel.index == 0;
  });
  EXPECT_NE(failure(answering(to_json(plan))).find("is refused: at "), std::string::npos);
  plan = *record_.plan;
  plan.instructions.pop_back();
  plan.instructions.emplace_back(Free{{0}, {7}});
  EXPECT_NE(failure(answering(to_json(plan))).find("is refused: "), std::string::npos);
  const std::string nothing = R"({"instructions": []})";
  EXPECT_NE(failure(answering(nothing)).find("is refused: "), std::string::npos);
  const std::string twice = R"({"start": [[0, 0], [0, 0]], "instructions": [["free", 3, 1]]})";
  EXPECT_NE(failure(answering(twice)).find("is refused: "), std::string::npos);
}

TEST_F(OutsidePlanner, ALieAboutTheBudgetOrTheGraphIsRefused) {
  Plan plan = *record_.plan;
  plan.budget[0] = record_.machine.tiers[0].capacity;
  EXPECT_NE(failure(answering(to_json(plan))).find(" is given"), std::string::npos);
  plan = *record_.plan;
  plan.graph = "0123456789abcdef";
  EXPECT_NE(failure(answering(to_json(plan))).find("made for another graph"), std::string::npos);
}

TEST_F(OutsidePlanner, ItsEndIsToldInASentence) {
  EXPECT_NE(failure(program("echo no luck >&2; exit 3")).find("ended with status 3: no luck"),
            std::string::npos);
  EXPECT_NE(failure(program("kill -9 $$")).find("was ended by signal 9"), std::string::npos);
  EXPECT_NE(failure("exec:/no/such/program").find("cannot start /no/such/program: No such file"),
            std::string::npos);
  EXPECT_NE(failure("exec:no-such-program").find("a program in this folder is ./no-such-program"),
            std::string::npos);
  EXPECT_NE(failure("exec: ").find("exec: is followed by a program"), std::string::npos);
}

TEST_F(OutsidePlanner, WhatIsNoPlanIsToldInASentence) {
  EXPECT_NE(failure(answering("")).find("wrote no plan: "), std::string::npos);
  EXPECT_NE(failure(answering("hello")).find("wrote no plan: cannot read the plan: line 1"),
            std::string::npos);
  EXPECT_NE(failure(answering("[1]")).find("an object with the key 'instructions' is wanted"),
            std::string::npos);
  EXPECT_NE(failure(answering(R"({"instructions": 3})")).find("wrote no plan: "), std::string::npos);
  EXPECT_NE(failure(answering(R"({"instructions": [["jump", 1]]})")).find("'jump' is not known"),
            std::string::npos);
  const std::string mixed = R"({"start": [[0, 0, 0]], "instructions": [["alloc", 1, 0]]})";
  EXPECT_NE(failure(answering(mixed)).find("give all of them or leave all out"), std::string::npos);
}

TEST_F(OutsidePlanner, ItIsStoppedWhenTheCallerAsksForIt) {
  std::stop_source source;
  std::jthread timer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    source.request_stop();
  });
  const auto plan = make_outside_plan(program("sleep 60"), request(), source.get_token());
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("was stopped before it had a plan"), std::string::npos);
}

TEST_F(OutsidePlanner, AProgramThatReadsNothingIsNoHarm) {
  EXPECT_NE(failure(program("exit 0")).find("wrote no plan"), std::string::npos);
}

}  // namespace
}  // namespace terrace
