// SPDX-License-Identifier: Apache-2.0
#include "base/similar.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

using Words = std::vector<std::string_view>;

TEST(Similar, FindsWordsAFewEditsAway) {
  EXPECT_EQ(similar("kittem", {"sitting", "kitten", "mitten"}), (Words{"kitten", "mitten"}));
  EXPECT_EQ(similar("ab", {"abx"}), Words{"abx"});
}

TEST(Similar, PutsTheClosestFirstAndNamesThreeAtMost) {
  EXPECT_EQ(similar("abcdef", {"abcdxx", "abcdex", "abcdxf", "xbcdef"}),
            (Words{"abcdex", "abcdxf", "xbcdef"}));
}

TEST(Similar, FindsWhatAWordBegins) {
  EXPECT_EQ(similar("long", {"longitude", "short"}), Words{"longitude"});
}

TEST(Similar, FindsNothingWhereNothingIsClose) {
  EXPECT_EQ(similar("zebra", {"horse", "cow"}), Words{});
  EXPECT_EQ(similar("", {"horse", "cow"}), Words{});
  EXPECT_EQ(similar("horse", {}), Words{});
}

TEST(Enumerated, ReadsLikeASentence) {
  EXPECT_EQ(enumerated({}), "");
  EXPECT_EQ(enumerated({"a"}), "a");
  EXPECT_EQ(enumerated({"a", "b"}), "a and b");
  EXPECT_EQ(enumerated({"a", "b", "c"}, "or"), "a, b or c");
}

}  // namespace
}  // namespace terrace
