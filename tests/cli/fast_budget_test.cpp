#include "pipeline/fast_budget.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {
using namespace literals;

TEST(FastBudget, IsAnAmountOrAShareOfThePeak) {
  EXPECT_EQ(parse_fast_budget("2GiB", 1_MiB).value(), 2_GiB);
  EXPECT_EQ(parse_fast_budget("4096", 1_MiB).value(), 4_KiB);
  EXPECT_EQ(parse_fast_budget("20%", 1000_B).value(), 200_B);
  EXPECT_EQ(parse_fast_budget("12.5%", 1000_B).value(), 125_B);
  EXPECT_EQ(parse_fast_budget("1000%", 1000_B).value(), 10'000_B);
}

TEST(FastBudget, RefusesWhatIsNeitherWithOneSentence) {
  for (const char* text : {"", "%", "0", "0%", "0GiB", "-5%", "1000.1%", "1e9%", "nan%", "inf%", "20 %",
                           "20%%", "abc", "2GiBs", "-1GiB", "0.00001%"}) {
    const auto budget = parse_fast_budget(text, 1000_B);
    ASSERT_FALSE(budget) << text;
    EXPECT_EQ(budget.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(budget.error().message.find("'" + std::string(text) + "' is no amount of fast memory"),
              std::string::npos)
        << budget.error().message;
  }
}

}  // namespace
}  // namespace terrace
