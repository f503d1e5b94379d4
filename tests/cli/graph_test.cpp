// SPDX-License-Identifier: Apache-2.0
// `terrace graph` as a user meets it, and graph files where models may stand.
#include "terrace/graph_json.hpp"

#include <gtest/gtest.h>

#include "cli/prepared_cache.hpp"
#include "terrace/models.hpp"

namespace terrace {
namespace {

using test::Outcome;
using Json = nlohmann::json;

class GraphCommand : public test::PreparedProgram {
 protected:
  void make_graph_file() {
    const Outcome outcome = run("graph mlp --batch 32 --optimizer sgd -o g.json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
};

TEST_F(GraphCommand, WritesTheGraphThatTheModelIs) {
  make_graph_file();
  const Optimizer sgd{.kind = Optimizer::Kind::sgd};
  const Graph built = build_model("mlp", {.batch = 32, .optimizer = sgd}).value();
  EXPECT_EQ(graph_from_json(tree_.read("work/g.json")).value(), built);
  EXPECT_EQ(run("graph mlp --batch 32 --optimizer sgd").out, tree_.read("work/g.json"));
}

TEST_F(GraphCommand, AFileIsPlannedAsItsModelIs) {
  make_graph_file();
  const std::string rest = "--machine v100-pcie3 --fast 70% --planner prefetch";
  Json file = json_of("plan g.json " + rest);
  Json model = json_of("plan mlp --batch 32 --optimizer sgd " + rest);
  EXPECT_EQ(file.at("model"), "g.json");
  EXPECT_TRUE(file.at("batch").is_null());
  for (const char* key : {"model", "batch", "plan_seconds"}) file.erase(key), model.erase(key);
  EXPECT_EQ(file, model);
}

TEST_F(GraphCommand, AFileMayStandWhereverAModelMay) {
  make_graph_file();
  const std::string machine = " --machine v100-pcie3";
  EXPECT_EQ(run("compare ./g.json --fast 70% --planners lru" + machine).code, 0);
  EXPECT_EQ(run("advise g.json --fast 80% --planner lru --slowdown 300%" + machine).code, 0);
  EXPECT_EQ(run("profile g.json --threads 1").code, 0);
  EXPECT_EQ(run("graph g.json -o again.json").code, 0);
  EXPECT_EQ(tree_.read("work/again.json"), tree_.read("work/g.json"));
}

TEST_F(GraphCommand, AFileIsTrainedToTheSameLossesAsItsModel) {
  make_graph_file();
  const Json file = json_of("train g.json --steps 2 --threads 1");
  const Json model = json_of("train mlp --batch 32 --optimizer sgd --steps 2 --threads 1");
  EXPECT_EQ(file.at("loss"), model.at("loss"));
}

TEST_F(GraphCommand, KernelsOfOthersArePlannedAndNotTrained) {
  tree_.write("work/foreign.json", R"({"format": "terrace-graph", "version": 1, "name": "zip",
    "tensors": [{"name": "x", "bytes": 4096, "kind": "input"}, {"name": "y", "bytes": 4096}],
    "kernels": [{"name": "pack", "operation": "acme.zip", "inputs": ["x"], "outputs": ["y"], "flops": 10}],
    "results": ["y"]})");
  EXPECT_EQ(run("plan foreign.json --machine v100-pcie3").code, 0);
  expect_complaint("train foreign.json", "kernel pack is not an operation this engine has");
}

/// A generator's state is a token: a planner that draws once more from a saved copy of it is refused.
TEST_F(GraphCommand, APlannerThatRecomputesATokensKernelIsRefused) {
  const auto graph = [](const std::string& kind) {
    return R"({"format": "terrace-graph", "version": 1, "name": "dice",
      "tensors": [{"name": "seed", "bytes": 64, "persistent": true, "kind": ")" +
           kind + R"("}, {"name": "throws", "bytes": 4096}, {"name": "sum", "bytes": 64}],
      "kernels": [{"name": "throw", "operation": "acme.dice", "inputs": ["seed"], "outputs": ["throws", "seed"], "flops": 10},
                  {"name": "add", "operation": "acme.sum", "inputs": ["throws"], "outputs": ["sum"], "flops": 10}],
      "results": ["sum"]})";
  };
  tree_.write("work/token.json", graph("token"));
  tree_.write("work/state.json", graph("statistics"));
  tree_.write("work/recomputing", R"(#!/bin/sh
cat > /dev/null
cat <<END
{"start": [[0, 0]],
 "instructions": [["alloc", 0, 1], ["copy", [0], 0, 1, 1], ["wait", 1],
   ["alloc", 1, 0], ["run", 0, 0, [0, 0, 0]], ["free", 1, 0],
   ["copy", [0], 1, 0, 2], ["wait", 2], ["free", 0, 1],
   ["alloc", 1, 0], ["run", 0, 0, [0, 0, 0]], ["alloc", 2, 0], ["run", 1, 0, [0, 0]], ["free", 1, 0]]}
END
)");
  std::filesystem::permissions(tree_.path() / "work/recomputing", std::filesystem::perms::owner_all);
  const std::string rest = " --machine v100-pcie3 --planner exec:./recomputing";
  const Outcome accepted = run("plan state.json" + rest);
  EXPECT_EQ(accepted.code, 0) << accepted.err;  // an ordinary state may be saved, brought back and used again
  expect_complaint("plan token.json" + rest,
                   "kernel throw runs again, and seed stands for state that no copy of it brings back");
}

TEST_F(GraphCommand, RefusesWhatIsNoGraph) {
  make_graph_file();
  tree_.write("work/text.json", "no graph");
  expect_complaint("graph resnet51", "did you mean resnet50");
  expect_complaint("graph mlp -o none/g.json", "the folder none does not exist");
  expect_complaint("plan none.json", "cannot read none.json");
  expect_complaint("plan ./none", "cannot read ./none");
  expect_complaint("plan text.json", "text.json: ");
  expect_complaint("plan g.json --batch 3", "--batch is for models of the zoo, and g.json holds its graph");
  expect_complaint("train g.json --data fashion-mnist --evaluate", "name a model of the zoo");
  expect_complaint("train g.json --lengths 1-8", "g.json has no sequences: leave out --lengths");
}

}  // namespace
}  // namespace terrace
