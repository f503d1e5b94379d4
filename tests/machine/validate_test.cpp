// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "machine/machines.hpp"

namespace terrace {
namespace {

using namespace literals;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Case {
  std::string what;
  std::function<void(Machine&)> change;
};

void expect_complaints(const std::vector<Case>& cases) {
  for (const Case& wrong : cases) {
    Machine machine = test::small_machine();
    wrong.change(machine);
    const auto result = validate(machine);
    ASSERT_FALSE(result.ok()) << wrong.what;
    EXPECT_EQ(result.error().message, "the machine 'small' is none: " + wrong.what);
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  }
}

TEST(ValidateMachine, AcceptsWhatIsRight) {
  EXPECT_TRUE(validate(test::small_machine()).ok());
  Machine extreme = test::small_machine();
  extreme.links[0].both_ways = 1;
  extreme.links[0].compute_loss = 1;
  extreme.tiers[0].price = 0;
  extreme.tiers[0].spec.clear();
  EXPECT_TRUE(validate(extreme).ok());
  test::RandomMachines random(7);
  for (int i = 0; i < 200; ++i) {
    const auto valid = validate(random.next());
    ASSERT_TRUE(valid.ok()) << valid.error().message;
  }
}

TEST(ValidateMachine, NamesTheTierThatIsWrong) {
  expect_complaints({
      {"it has no tier", [](Machine& m) { m.tiers.clear(); }},
      {"tiers[1] has no name", [](Machine& m) { m.tiers[1].name.clear(); }},
      {"the name of tiers[1] is not UTF-8", [](Machine& m) { m.tiers[1].name = "\xff"; }},
      {"there are two tiers named 'dram'", [](Machine& m) { m.tiers[1].name = "dram"; }},
      {"tier 'dram': it is the fastest, so kernels must be able to use it in place (addressable)",
       [](Machine& m) { m.tiers[0].addressable = false; }},
      {"tier 'disk': it has no capacity", [](Machine& m) { m.tiers[1].capacity = 0_B; }},
      {"tier 'disk': its capacity of 1048577TiB is more than the 1048576TiB a tier can have",
       [](Machine& m) { m.tiers[1].capacity = 1048577 * 1_TiB; }},
      {"tier 'disk': its granularity of 0B is no power of two",
       [](Machine& m) { m.tiers[1].granularity = 0_B; }},
      {"tier 'disk': its granularity of 500B is no power of two",
       [](Machine& m) { m.tiers[1].granularity = 500_B; }},
      {"tier 'disk': its granularity of 1TiB is more than its capacity of 200GiB",
       [](Machine& m) { m.tiers[1].granularity = 1_TiB; }},
      {"tier 'dram': its read rate is 0, not above zero", [](Machine& m) { m.tiers[0].read = {0}; }},
      {"tier 'dram': its read rate is nan, not above zero", [](Machine& m) { m.tiers[0].read = {kNan}; }},
      {"tier 'dram': its write rate is inf, not above zero",
       [](Machine& m) { m.tiers[0].write = {kInfinity}; }},
      {"tier 'dram': its latency is -1 seconds, which is no time",
       [](Machine& m) { m.tiers[0].latency = Seconds{-1}; }},
      {"tier 'dram': its price is -2, which is none", [](Machine& m) { m.tiers[0].price = -2; }},
      {"tier 'disk': its spec is not UTF-8", [](Machine& m) { m.tiers[1].spec = "file:/\xff:1GiB"; }},
      {"tier 'disk': its spec is wrong: a tier of zero bytes holds nothing: ask for at least 1MiB",
       [](Machine& m) { m.tiers[1].spec = "dram:0"; }},
  });
}

TEST(ValidateMachine, NamesTheLinkThatIsWrong) {
  expect_complaints({
      {"links[1] leads to tier 2 of 2", [](Machine& m) { m.links[1].to = TierId{2}; }},
      {"links[0] leads to tier 7 of 2", [](Machine& m) { m.links[0].from = TierId{7}; }},
      {"the link from 'dram' to 'dram' leads nowhere else", [](Machine& m) { m.links[0].to = TierId{0}; }},
      {"there are two links from 'dram' to 'disk'", [](Machine& m) { m.links[1] = m.links[0]; }},
      {"the link from 'disk' to 'dram': it has no rates", [](Machine& m) { m.links[1].rates.clear(); }},
      {"the link from 'dram' to 'disk': rates[0] is for transfers of 0B, which is no size",
       [](Machine& m) { m.links[0].rates[0].size = 0_B; }},
      {"the link from 'dram' to 'disk': rates[1] is 0, not above zero",
       [](Machine& m) { m.links[0].rates[1].rate = {0}; }},
      {"the link from 'dram' to 'disk': the sizes of rates[0] and rates[1] do not ascend",
       [](Machine& m) { m.links[0].rates[1].size = 64_KiB; }},
      {"the link from 'dram' to 'disk': both_ways is 0, not a share above 0 and up to 1",
       [](Machine& m) { m.links[0].both_ways = 0; }},
      {"the link from 'dram' to 'disk': while_computing is 0, not a share above 0 and up to 1",
       [](Machine& m) { m.links[0].while_computing = 0; }},
      {"the link from 'dram' to 'disk': both_ways is nan, not a share above 0 and up to 1",
       [](Machine& m) { m.links[0].both_ways = kNan; }},
      {"the link from 'dram' to 'disk': compute_loss is 1.5, not a share from 0 to 1",
       [](Machine& m) { m.links[0].compute_loss = 1.5; }},
      {"the link from 'dram' to 'disk': no thread copies", [](Machine& m) { m.links[0].threads = 0; }},
  });
}

TEST(ValidateMachine, NamesTheEngineThatIsWrong) {
  const auto engine = [](Machine& m, const char* name) -> Engine& {
    m.further_engines.push_back({{name, 1, 1e9, {}}, {{0}, {1}}});
    return m.further_engines.back();
  };
  Machine right = test::small_machine();
  engine(right, "beside");
  EXPECT_TRUE(validate(right).ok());
  expect_complaints({
      {"engine 1 has no name", [&](Machine& m) { engine(m, ""); }},
      {"there are two engines named 'a processor'", [&](Machine& m) { engine(m, "a processor"); }},
      {"there are two engines named 'beside'", [&](Machine& m) { engine(m, "beside"), engine(m, "beside"); }},
      {"engine 1: no thread computes", [&](Machine& m) { engine(m, "e").compute.threads = 0; }},
      {"engine 'e': it reaches no tier", [&](Machine& m) { engine(m, "e").reaches.clear(); }},
      {"engine 'e': it reaches tier 2 of 2", [&](Machine& m) { engine(m, "e").reaches[1] = {2}; }},
      {"engine 'e': the tiers it reaches are not in the machine's order, each once",
       [&](Machine& m) {
         engine(m, "e").reaches = {{1}, {0}};
       }},
      {"engine 'e': its rate for bf16 is 0, not above zero",
       [&](Machine& m) {
         engine(m, "e").compute.by_type = {{DataType::bf16, 0}};
       }},
      {"compute: it has two rates for f64",
       [](Machine& m) {
         m.compute.by_type = {{DataType::f64, 1}, {DataType::f64, 2}};
       }},
      {"compute: its rate for f32 is flops_per_second, and not one of by_type",
       [](Machine& m) {
         m.compute.by_type = {{DataType::f32, 1}};
       }},
  });
}

TEST(ValidateMachine, LooksAtComputeAndWords) {
  expect_complaints({
      {"no thread computes", [](Machine& m) { m.compute.threads = 0; }},
      {"compute.flops_per_second is 0, not above zero", [](Machine& m) { m.compute.flops_per_second = 0; }},
      {"the processor's name is not UTF-8", [](Machine& m) { m.compute.name = "\xff"; }},
      {"its name or source is not UTF-8", [](Machine& m) { m.source = "\xff"; }},
  });
  Machine unnamed = test::small_machine();
  unnamed.name = "\xff";
  EXPECT_EQ(validate(unnamed).error().message, "the machine is none: its name or source is not UTF-8");
}

}  // namespace
}  // namespace terrace
