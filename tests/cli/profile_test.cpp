// SPDX-License-Identifier: Apache-2.0
// `terrace profile` as a user meets it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/prepared_cache.hpp"
#include "cli/program.hpp"
#include "profile/database.hpp"

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

TEST_F(ProfileCommand, ComplainsAboutWhatCannotBeProfiled) {
  expect_complaint("profile", "model is required");
  expect_complaint("profile mpl", "there is no model 'mpl'");
  expect_complaint("profile mpl --kernels", "there is no model 'mpl'");
  expect_complaint("profile mlp --kernels --steps 0", "--steps: '0' does not fit");
  expect_complaint("profile mlp --kernels --top 0", "--top: '0' does not fit");
  expect_complaint("profile resnet50 --kernels --batch 1000000", " is available ");
  expect_complaint("profile mlp -o no/such/folder.svg", "cannot write no/such/folder.svg");
}

/// With a cache folder of its own.
class TensorProfileCommand : public test::PreparedProgram {};

TEST_F(TensorProfileCommand, PrintsAndDrawsTheThreeObservations) {
  const Outcome outcome = run("profile convnet --batch 4 --threads 2 -o tensors.svg");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"counted in one step", "1 layer", "below 4 KiB", "accesses", "in allocation order",
                           "grouped", "falsely shared", "one tensor per page", "tensors below 4 KiB"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
  }
  const std::string svg = tree_.read("work/tensors.svg");
  EXPECT_TRUE(svg.starts_with("<svg")) << svg;
  EXPECT_NE(svg.find("Lifetimes of tensors"), std::string::npos);
}

TEST_F(TensorProfileCommand, WritesJsonThatAddsUp) {
  const Json json = json_of("profile mlp --batch 8 --threads 1");
  EXPECT_EQ(json.at("counted"), true);
  EXPECT_EQ(json.at("reason"), nullptr);
  EXPECT_EQ(json.at("operands"), json.at("watched_operands")) << "every tensor has pages of its own";
  EXPECT_GT(json.at("counted_step_seconds"), 0.0);
  for (const char* key : {"lifetimes", "sizes", "accesses"}) {
    std::size_t tensors = 0;
    for (const auto& bucket : json.at(key)) tensors += bucket.at("tensors").get<std::size_t>();
    EXPECT_EQ(tensors, json.at("tensors")) << key;
  }
  for (const char* key : {"allocation_order", "grouped"}) {
    const Json& sharing = json.at("sharing").at(key);
    std::uint64_t bytes = 0;
    for (const auto& amount : sharing.at("page_bytes_by_accesses")) bytes += amount.get<std::uint64_t>();
    EXPECT_EQ(bytes, sharing.at("pages").get<std::uint64_t>() * 4096) << key;
    EXPECT_LE(sharing.at("falsely_shared_pages"), sharing.at("shared_pages")) << key;
  }
  const Json& memory = json.at("memory");
  EXPECT_GT(memory.at("small").at("in_pages_bytes"), memory.at("small").at("original_bytes"));
  EXPECT_GE(memory.at("all").at("in_pages_bytes"), memory.at("all").at("original_bytes"));
}

TEST_F(TensorProfileCommand, TakesAccessesFromTheGraphWhereItCannotRun) {
  const Json json = json_of("profile resnet50 --batch 100000");
  EXPECT_EQ(json.at("counted"), false);
  EXPECT_NE(json.at("reason").get<std::string>().find(" is available "), std::string::npos);
  EXPECT_EQ(json.at("counted_step_seconds"), nullptr);
  EXPECT_GT(json.at("tensors"), 100);
}

TEST_F(TensorProfileCommand, RemembersAccessesForProfilesToCome) {
  static_cast<void>(json_of("profile mlp --batch 8 --threads 1"));
  Database store(tree_.path() / "cache/terrace/profiles.sqlite");
  EXPECT_GT(store.number("SELECT count(*) FROM kernel_access WHERE pages > 0"), 0);
}

}  // namespace
}  // namespace terrace
