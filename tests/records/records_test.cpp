// SPDX-License-Identifier: Apache-2.0
// Planning for GPUs does not become worse unseen: steps that were recorded on a GPU, or estimated for one
// (*.roofline.json.gz), are planned anew, and no planner's step or gap over the bound may exceed what
// limits.txt states for it.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "support/long_tests.hpp"
#include "terrace/planner.hpp"
#include "terrace/record.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(TERRACE_TESTS) / "records";
/// Planning is deterministic; this is for compilers that round otherwise.
constexpr double kTolerance = 1.005;

std::string unpacked(const fs::path& path) {
  const auto close = [](gzFile file) { gzclose(file); };
  const std::unique_ptr<gzFile_s, decltype(close)> file(gzopen(path.c_str(), "rb"), close);
  std::string text;
  char part[1 << 16];
  for (int got = 0; file && (got = gzread(file.get(), part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  return text;
}

/// One line of limits.txt: `RECORD PLANNER PERCENT MILLISECONDS GAP`, and `long` where only `make long` has
/// it.
struct Limit {
  std::string record, planner;
  std::uint64_t percent = 0;
  double milliseconds = 0, gap = 0;
  std::string when;
};

std::ostream& operator<<(std::ostream& out, const Limit& limit) {
  return out << limit.planner << " at " << limit.percent << "% of " << limit.record;
}

std::vector<Limit> limits() {
  std::ifstream file(kFolder / "limits.txt");
  std::vector<Limit> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    Limit limit;
    if (words >> limit.record >> limit.planner >> limit.percent >> limit.milliseconds >> limit.gap) {
      words >> limit.when;
      all.push_back(limit);
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Limit>& limit) {
  std::string name =
      limit.param.record + "_" + limit.param.planner + "_" + std::to_string(limit.param.percent);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

class RecordedStep : public testing::TestWithParam<Limit> {};
INSTANTIATE_TEST_SUITE_P(Of, RecordedStep, testing::ValuesIn(limits()), name_of);

TEST_P(RecordedStep, IsPlannedWithinItsLimits) {
  const Limit& limit = GetParam();
  if (limit.when == "long" && !long_tests()) GTEST_SKIP() << "make long has it";
  const auto record = record_from_json(unpacked(kFolder / (limit.record + ".json.gz")));
  ASSERT_TRUE(record) << record.error().message;
  std::vector<Bytes> budget;
  for (const MachineTier& tier : record->machine.tiers) budget.push_back(tier.capacity);
  budget[0] = round_down(record->peak / 100 * limit.percent, record->machine.tiers[0].granularity);
  const auto plan = make_plan(limit.planner, {record->graph, record->machine, record->profile, budget, 1});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(violations(record->graph, record->machine, *plan, 1).empty());
  EXPECT_LE(1000 * plan->prediction.step.count(), kTolerance * limit.milliseconds);
  EXPECT_LE(100 * plan->prediction.gap(), limit.gap) << "percent over the bound";
}

TEST(RecordedSteps, AreAllUsed) {
  std::map<std::string, int> used;
  for (const Limit& limit : limits()) ++used[limit.record];
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().native();
    if (!name.ends_with(".json.gz")) continue;
    EXPECT_GT(used[name.substr(0, name.size() - 8)], 0) << name << " has no line in limits.txt";
  }
  EXPECT_GE(used.size(), 3U);
}

}  // namespace
}  // namespace terrace
