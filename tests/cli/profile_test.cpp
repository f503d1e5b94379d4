// `terrace profile --kernels` as a user meets it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace terrace {
namespace {

using test::Outcome;

class ProfileCommand : public test::Program {};

TEST_F(ProfileCommand, PrintsOperationsTheirTotalAndTheSlowestKernels) {
  const Outcome outcome = run("profile convnet --kernels --batch 4 --steps 1 --top 2");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part :
       {"GFLOP/s (multiply-adds in registers)", "GB/s (a = b + s c in memory)", "ms/step", "roofline",
        "conv2d_backward_weights", "batch_norm", "adam", "\ntotal ", "100.0%", "implementation", " > "}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
  }
}

TEST_F(ProfileCommand, WritesJsonThatAddsUpInsteadOfTables) {
  const Outcome outcome = run("profile mlp --kernels --batch 4 --steps 2 --threads 1 --json result.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const auto json = nlohmann::json::parse(tree_.read("work/result.json"));
  EXPECT_EQ(json.at("model"), "mlp");
  EXPECT_EQ(json.at("batch"), 4);
  EXPECT_EQ(json.at("threads"), 1);
  EXPECT_EQ(json.at("steps"), 2);
  EXPECT_GT(json.at("peak_flops_per_second"), 0.0);
  EXPECT_GT(json.at("peak_bytes_per_second"), 0.0);
  double of_operations = 0, of_kernels = 0;
  std::size_t count = 0;
  for (const auto& operation : json.at("operations")) {
    of_operations += operation.at("seconds").get<double>();
    count += operation.at("count").get<std::size_t>();
    EXPECT_GE(operation.at("roofline_share"), 0.0);
  }
  for (const auto& kernel : json.at("kernels")) of_kernels += kernel.at("seconds").get<double>();
  const double total = json.at("total").at("seconds");
  EXPECT_NEAR(of_operations, total, total * 1e-9);
  EXPECT_NEAR(of_kernels, total, total * 1e-9);
  EXPECT_EQ(count, json.at("kernels").size());
}

TEST_F(ProfileCommand, WantsToBeToldWhatToProfile) {
  expect_complaint("profile mlp", "say what to profile: --kernels");
  EXPECT_NE(run("profile --help").out.find("the only mode"), std::string::npos);
  expect_complaint("profile", "model is required");
  expect_complaint("profile mpl --kernels", "there is no model 'mpl'");
  expect_complaint("profile mlp --kernels --steps 0", "--steps: '0' does not fit");
  expect_complaint("profile mlp --kernels --top 0", "--top: '0' does not fit");
  expect_complaint("profile resnet50 --kernels --batch 1000000", " is available ");
}

}  // namespace
}  // namespace terrace
