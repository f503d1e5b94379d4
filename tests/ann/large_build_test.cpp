// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "ann/files.hpp"
#include "ann/links_file.hpp"
#include "ann/made_vectors.hpp"
#include "ann/shards.hpp"
#include "terrace/ann.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::ann {
namespace {

using namespace literals;

class LargeBuild : public testing::Test {
 protected:
  LargeBuild() {
    // Rows 100 and 200 are the same again.
    for (const std::size_t row : {100U, 200U, 100U})
      vectors_.values.insert(vectors_.values.end(),
                             vectors_.values.begin() + static_cast<std::ptrdiff_t>(row * 24),
                             vectors_.values.begin() + static_cast<std::ptrdiff_t>((row + 1) * 24));
    write_vectors(data(), vectors_).value();
  }
  std::filesystem::path data() const { return folder_.path() / "data.fbin"; }
  std::filesystem::path index(const char* name = "index") const { return folder_.path() / name; }
  /// What a shard of so many rows needs, and what is kept for all rows.
  Bytes memory_for(std::uint64_t shard_rows, const BuildOptions& options) const {
    return shard_row_bytes(24, options.links) * options.builders * shard_rows +
           Bytes{24 + options.code_bytes} * vectors_.count() + 8_MiB;
  }
  double recall_of(const Index& opened) const {
    const Neighbours truth = exact_neighbours(vectors_, queries_, 10, Metric::l2).value();
    return recall(opened.search(queries_, 10, {.ef1 = 20, .ef0 = 60}).value(), truth, 10);
  }

  static bool same_files(const std::filesystem::path& a, const std::filesystem::path& b) {
    for (const char* name : {"manifest.json", "fast.bin", "slow.bin"})
      if (contents(a / name) != contents(b / name)) return false;
    return true;
  }

  TemporaryFolder folder_;
  Vectors vectors_ = generate(mixture(3000, 24));
  const Vectors queries_ = generate(mixture(100, 24), 1);
};

TEST_F(LargeBuild, FindsNearlyWhatABuildInMemoryFinds) {
  for (const std::uint32_t codes : {0U, 6U}) {
    const BuildOptions options = small_build(codes);
    const double in_memory = recall_of(Index::build(vectors_, options).value());
    for (const std::uint64_t rows : {4000U, 1500U, 600U}) {
      build_index(data(), index(), options, memory_for(rows, options)).value();
      for (const Placement placement : {Placement::memory, Placement::disk}) {
        const Index opened = Index::open(index(), {.placement = placement}).value();
        EXPECT_EQ(opened.size().vectors, 3003U);
        EXPECT_EQ(opened.size().nodes, 3000U);
        EXPECT_GE(recall_of(opened), in_memory - 0.02) << rows << " " << codes;
      }
      EXPECT_TRUE(verify_index(index()).ok());
      EXPECT_FALSE(std::filesystem::exists(index() / "building"));
    }
  }
}

TEST_F(LargeBuild, LeavesNoVectorBehind) {
  const BuildOptions options = small_build();
  build_index(data(), index(), options, memory_for(600, options)).value();
  const Index opened = Index::open(index()).value();
  EXPECT_LE(opened.size().fast(), options.fast);
  EXPECT_GT(opened.size().promoted, 100U);
  const Neighbours found = opened.search(vectors_, 3, {.ef1 = 40, .ef0 = 100}).value();
  std::size_t lost = 0;
  std::set<std::uint32_t> ids;
  for (std::uint32_t row = 0; row < 3003; ++row) {
    bool itself = false;
    for (const Neighbour& one : found[row]) {
      ids.insert(one.id);
      itself = itself || (one.id == row && one.distance == 0);
    }
    lost += !itself;
  }
  EXPECT_LE(lost, 5U);
  EXPECT_EQ(ids.count(3000) + ids.count(3001) + ids.count(3002), 3U) << "twins";
}

TEST_F(LargeBuild, InThreadsMakesTheSameShards) {
  BuildOptions options = small_build();
  options.fast = 100_KB;
  build_index(data(), index("one"), options, memory_for(600, options)).value();
  options.builders = 2;
  build_index(data(), index("two"), options, memory_for(600, options)).value();
  EXPECT_TRUE(same_files(index("one"), index("two")));
}

#if !defined(__SANITIZE_THREAD__)  // which does not follow a process that forks
TEST_F(LargeBuild, GoesOnAfterItWasKilled) {
  const BuildOptions options = small_build(6);
  const Bytes memory = memory_for(900, options);
  const auto counted_build = [&](const std::filesystem::path& path) {
    int calls = 0;
    BuildOptions counted = options;
    counted.progress = [&](std::string_view, double) { ++calls; };
    build_index(data(), path, counted, memory).value();
    return calls;
  };
  const int calls = counted_build(index("whole"));
  // Twice while shards are built, after at least one of them; then in the stages that follow.
  struct Death {
    std::string_view stage;
    int call;
  };
  for (const Death death : {Death{"building shards", calls / 5}, Death{"building shards", calls / 5},
                            Death{"joining shards", 1}, Death{"ordering", 1}, Death{"connecting", 1},
                            Death{"promoting", 20}, Death{"writing", 1}, Death{"writing", 3}}) {
    const pid_t child = fork();
    if (child == 0) {
      int left = death.call;
      BuildOptions mortal = options;
      mortal.progress = [&](std::string_view stage, double) {
        if (stage == death.stage && --left == 0) raise(SIGKILL);
      };
      (void)build_index(data(), index(), mortal, memory);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << death.stage;
    EXPECT_FALSE(Index::open(index()).ok()) << "a part of an index is none";
  }
  EXPECT_LT(counted_build(index()), calls / 2) << "what was there is not built again";
  EXPECT_TRUE(same_files(index("whole"), index()));
}
#endif

TEST_F(LargeBuild, StartsAnewForOtherOptions) {
  BuildOptions options = small_build();
  struct Stop {};
  BuildOptions stopped = options;
  stopped.progress = [](std::string_view stage, double) {
    if (stage == "joining shards") throw Stop{};
  };
  EXPECT_THROW((void)build_index(data(), index(), stopped, memory_for(900, options)), Stop);
  EXPECT_TRUE(std::filesystem::exists(index() / "building" / "shard-0"));
  options.seed = 2;
  std::set<std::string> stages;
  options.progress = [&](std::string_view stage, double) { stages.insert(std::string(stage)); };
  build_index(data(), index(), options, memory_for(900, options)).value();
  EXPECT_EQ(stages.count("reading"), 1U);
  EXPECT_TRUE(Index::open(index()).ok());
}

TEST_F(LargeBuild, RefusesWhatItCannotDo) {
  const auto complaint = [&](const std::filesystem::path& path, const BuildOptions& options, Bytes memory) {
    const auto built = build_index(path, index("refused"), options, memory);
    return built.ok() ? std::string("none") : built.error().message;
  };
  EXPECT_NE(complaint(data(), small_build(), 1_MB).find("cannot be built in 976.56 KiB: give it at least"),
            std::string::npos)
      << complaint(data(), small_build(), 1_MB);
  EXPECT_NE(complaint(folder_.path() / "none.fbin", small_build(), 1_GB), "none");
  EXPECT_NE(complaint(data(), small_build(25), 1_GB).find("a byte for each of the 24"), std::string::npos);
  BuildOptions little = small_build();
  little.fast = 5_KB;
  EXPECT_NE(complaint(data(), little, 1_GB).find("does not work in"), std::string::npos);
  std::filesystem::resize_file(data(), 1000);
  EXPECT_NE(complaint(data(), small_build(), 1_GB).find("declares 3003 rows"), std::string::npos);
  Vectors broken = generate(mixture(50, 24));
  broken.values[30] = 1e30F;
  ASSERT_TRUE(write_vectors(data(), broken).ok());
  EXPECT_NE(complaint(data(), small_build(), 1_GB), "none");
}

TEST_F(LargeBuild, ReadsEveryFormatAsItIsReadWhole) {
  for (const char* name : {"a.fvecs", "a.npy", "a.fbin"}) {
    ASSERT_TRUE(write_vectors(folder_.path() / name, vectors_).ok());
    const auto source = VectorSource::open(folder_.path() / name).value();
    ASSERT_EQ(source.count(), 3003U);
    std::vector<float> all, one(24);
    source.read_all([&](std::uint64_t first, std::span<const float> values) {
      EXPECT_EQ(first * 24, all.size());
      all.insert(all.end(), values.begin(), values.end());
    });
    EXPECT_EQ(all, vectors_.values) << name;
    source.read(1234, one.data());
    EXPECT_TRUE(std::equal(one.begin(), one.end(), vectors_[1234].begin())) << name;
  }
}

TEST(LinksFile, CountsDegreesWhateverMemoryItHasAndConnects) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "links";
  constexpr std::uint32_t kFree = 0xFFFFFFFF;
  // 0 <-> 1, 0 -> 2, 3 -> 2: nothing leads to 3. Row 4 is left out.
  const std::vector<std::uint32_t> links{1, 2, 0, kFree, kFree, kFree, 2, kFree, kFree, kFree};
  put(path, {reinterpret_cast<const char*>(links.data()), links.size() * 4});
  auto file = LinksFile::open(path, 5, 2).value();
  for (const Bytes memory : {1_B, 16_B, 1_KB})
    EXPECT_EQ(undirected_degrees(file, memory), (std::vector<std::uint32_t>{2, 1, 2, 1, 0}));
  const std::uint32_t start = 0;
  EXPECT_EQ(connect_rows(file, std::span(&start, 1), {false, false, false, false, true}), 1U);
  EXPECT_EQ(file.read(2, 1), (std::vector<std::uint32_t>{3, kFree}));
  EXPECT_FALSE(file.add(0, 3)) << "has no room";
  EXPECT_FALSE(LinksFile::open(path, 6, 2).ok());
}

TEST(Shards, AreSmallEnoughForTheCacheAndLoadedManyAtOnce) {
  BuildOptions options;
  options.builders = 2;
  const ShardPlan plan = plan_shards(3'000'000, 128, options, 1_GiB).value();
  EXPECT_LE(shard_row_bytes(128, options.links) * plan.most_rows, 32_MiB);
  EXPECT_GE(plan.most_rows * plan.shards, 3'000'000U * 18 / 10);
  EXPECT_GT(plan.rows_in_memory, 10 * plan.most_rows) << "of an upper layer";
  EXPECT_GT(plan.loaded_rows, 20 * plan.most_rows);
  const Bytes graphs = (shard_row_bytes(128, options.links) - Bytes{512}) * plan.most_rows * 2;
  EXPECT_LE(graphs + Bytes{512} * plan.loaded_rows, 1_GiB);
  // So many rows that there would be thousands of shards.
  EXPECT_LE(plan_shards(100'000'000, 128, options, 16_GiB).value().shards, 501U);
}

TEST(Shards, HoldNoMoreThanTheyMayAndEveryRowOnceAtLeast) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "data.fbin";
  ASSERT_TRUE(write_vectors(path, generate(mixture(2000, 8))).ok());
  const auto source = VectorSource::open(path).value();
  for (const std::uint64_t most : {300U, 500U, 2000U}) {
    const ShardPlan plan{most, static_cast<std::uint32_t>(2000 * 18 / 10 / most + 1)};
    std::vector<bool> left_out(2000);
    left_out[7] = true;
    const auto members = assign_rows(source, Metric::l2, plan, left_out, 1);
    std::vector<std::uint64_t> held(plan.shards);
    std::uint64_t twice = 0;
    for (std::uint32_t row = 0; row < 2000; ++row) {
      ASSERT_EQ(members[row].primary == kNoShard, row == 7);
      if (row == 7) continue;
      ++held[members[row].primary];
      if (members[row].second == kNoShard) continue;
      ASSERT_NE(members[row].second, members[row].primary);
      ++held[members[row].second];
      ++twice;
    }
    for (const std::uint64_t rows : held) EXPECT_LE(rows, most);
    EXPECT_GT(twice, 100U) << most;
  }
}

}  // namespace
}  // namespace terrace::ann
