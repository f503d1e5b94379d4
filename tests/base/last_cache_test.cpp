// SPDX-License-Identifier: Apache-2.0
#include "base/last_cache.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

using namespace literals;

/// A folder as Linux has one for each core.
class CacheFolder {
 public:
  void list(int index, const std::string& size) {
    const auto folder = folder_.path() / ("index" + std::to_string(index));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "size") << size << "\n";
  }
  Bytes largest() const { return largest_listed_cache(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

TEST(LastCache, IsTheLargestThatIsListedInAnyUnit) {
  CacheFolder folder;
  folder.list(0, "48K");
  folder.list(1, "32K");
  EXPECT_EQ(folder.largest(), 48_KiB);
  folder.list(3, "2M");
  EXPECT_EQ(folder.largest(), 2_MiB);
  folder.list(2, "1024K");
  EXPECT_EQ(folder.largest(), 2_MiB);
}

TEST(LastCache, PassesOverWhatIsNoSize) {
  CacheFolder folder;
  EXPECT_EQ(folder.largest(), Bytes{});
  folder.list(0, "unknown");
  EXPECT_EQ(folder.largest(), Bytes{});
  folder.list(1, "512");
  EXPECT_EQ(folder.largest(), Bytes{512});
}

TEST(LastCache, HasSomeSizeOnEveryComputer) { EXPECT_GE(last_cache(), 16_KiB); }

}  // namespace
}  // namespace terrace
