// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>

#include "ann/files.hpp"
#include "ann/made_vectors.hpp"
#include "ann/manifest.hpp"
#include "base/random.hpp"
#include "support/tiers.hpp"
#include "terrace/error.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::ann {
namespace {

using namespace literals;

constexpr SearchOptions kSearch{.ef1 = 20, .ef0 = 20};

class SavedIndex : public testing::Test {
 protected:
  SavedIndex() : vectors_(generate(mixture(2000, 24))), queries_(generate(mixture(40, 24), 1)) {
    vectors_.values.insert(vectors_.values.end(), vectors_.values.begin(), vectors_.values.begin() + 24 * 3);
    BuildOptions options;
    options.links = 8;
    options.ef_construction = 60;
    options.fast = 150_KB;
    const Index index = Index::build(vectors_, options).value();
    expected_ = index.search(queries_, 10, kSearch).value();
    index.save(path()).value();
  }

  std::filesystem::path path() const { return folder_.path() / "index"; }
  std::string complaint(Placement placement = Placement::memory) const {
    const auto opened = Index::open(path(), {.placement = placement});
    return opened.ok() ? "none" : opened.error().message;
  }
  /// Writes the manifest anew with the checksums of the files as they are.
  void forge() const {
    Manifest manifest = parse_manifest(contents(path() / "manifest.json")).value();
    const auto sums = [&](const char* name) {
      const std::string text = contents(path() / name);
      std::vector<std::uint32_t> all;
      for (std::size_t at = 0; at < text.size(); at += kCheckedPiece.count)
        all.push_back(checksum(
            std::as_bytes(std::span(text).subspan(at, std::min(text.size() - at, kCheckedPiece.count)))));
      return all;
    };
    manifest.fast_checksums = sums("fast.bin");
    manifest.slow_checksums = sums("slow.bin");
    put(path() / "manifest.json", print_manifest(manifest));
  }
  void overwrite(const char* name, std::size_t at, std::uint32_t word) const {
    std::string text = contents(path() / name);
    std::memcpy(text.data() + at, &word, sizeof word);
    put(path() / name, text);
  }

  TemporaryFolder folder_;
  Vectors vectors_, queries_;
  Neighbours expected_;
};

TEST_F(SavedIndex, AnswersAsBeforeWhereverItIsOpened) {
  const auto emulated = open_tier("emulated:4MiB,read=39GB/s,write=13GB/s,latency=300ns").value();
  for (const OpenOptions& options :
       {OpenOptions{}, OpenOptions{.slow = emulated.get()}, OpenOptions{.placement = Placement::disk},
        OpenOptions{.placement = Placement::disk, .searchers = 2, .cache = 400_KB}}) {
    const Index index = Index::open(path(), options).value();
    const Neighbours found = index.search(queries_, 10, kSearch).value();
    EXPECT_EQ(found, expected_);
    EXPECT_EQ(index.size().vectors, 2003U);
  }
  EXPECT_TRUE(verify_index(path()).ok());
}

TEST_F(SavedIndex, OnItsDiskIsSearchedInThreadsAsInOne) {
  const Index index =
      Index::open(path(), {.placement = Placement::disk, .searchers = 3, .cache = 600_KB}).value();
  std::vector<Neighbours> found(6);
  {
    std::vector<std::jthread> threads;
    for (auto& one : found) threads.emplace_back([&] { one = index.search(queries_, 10, kSearch).value(); });
  }
  for (const auto& one : found) EXPECT_EQ(one, expected_);
  EXPECT_EQ(index.statistics().queries, 6 * queries_.count());
}

TEST_F(SavedIndex, IsTheSameFileWhenSavedAgain) {
  const Index index = Index::open(path()).value();
  const auto again = folder_.path() / "again";
  ASSERT_TRUE(index.save(again).ok());
  for (const char* name : {"manifest.json", "fast.bin", "slow.bin"})
    EXPECT_EQ(contents(path() / name), contents(again / name)) << name;
}

TEST_F(SavedIndex, RemembersWhatWasRemoved) {
  Index index = Index::open(path()).value();
  const std::uint32_t nearest = expected_[0][0].id;
  ASSERT_TRUE(index.remove(nearest).ok());
  const Neighbours without = index.search(queries_, 10, kSearch).value();
  const auto again = folder_.path() / "again";
  ASSERT_TRUE(index.save(again).ok());
  const Index opened = Index::open(again, {.placement = Placement::disk}).value();
  EXPECT_EQ(opened.size().removed, 1U);
  const Neighbours found = opened.search(queries_, 10, kSearch).value();
  EXPECT_EQ(found, without);
  EXPECT_NE(found[0][0].id, nearest);
}

TEST_F(SavedIndex, OfNothingIsAnIndexToo) {
  const auto empty = folder_.path() / "empty";
  ASSERT_TRUE(Index::build(Vectors{5, {}}, {})->save(empty).ok());
  for (const Placement placement : {Placement::memory, Placement::disk}) {
    const Index index = Index::open(empty, {.placement = placement}).value();
    const Neighbours found = index.search(generate(mixture(1, 5)), 3, {}).value();
    EXPECT_TRUE(found[0].empty());
  }
}

TEST_F(SavedIndex, IsRefusedWhereSomethingIsMissingOrCutOff) {
  for (const char* name : {"manifest.json", "fast.bin", "slow.bin"}) {
    const std::string whole = contents(path() / name);
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 2}) {
      put(path() / name, whole.substr(0, size));
      EXPECT_NE(complaint(), "none") << name << " of " << size;
      EXPECT_NE(complaint(Placement::disk), "none") << name << " of " << size;
    }
    std::filesystem::remove(path() / name);
    EXPECT_NE(complaint().find(name), std::string::npos) << complaint();
    put(path() / name, whole);
  }
  EXPECT_EQ(complaint(), "none");
}

TEST_F(SavedIndex, IsRefusedWhereOneByteIsAnother) {
  for (const char* name : {"fast.bin", "slow.bin"}) {
    const std::string whole = contents(path() / name);
    for (const std::size_t at : {std::size_t{0}, whole.size() / 3, whole.size() - 1}) {
      std::string other = whole;
      other[at] = static_cast<char>(other[at] ^ 4);
      put(path() / name, other);
      EXPECT_NE(complaint().find("is damaged between bytes 0 and"), std::string::npos) << complaint();
      EXPECT_FALSE(verify_index(path()).ok());
    }
    put(path() / name, whole);
  }
}

TEST_F(SavedIndex, WithAForgedLinkInFastMemoryIsRefused) {
  overwrite("fast.bin", 0, 0x7FFFFFFF);
  forge();
  EXPECT_NE(complaint().find("a link that leads to no node"), std::string::npos) << complaint();
}

TEST_F(SavedIndex, WithForgedRecordsFailsTheQueryAloud) {
  const std::size_t size = contents(path() / "slow.bin").size();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::uint32_t nan_word = 0;
  std::memcpy(&nan_word, &nan, sizeof nan);
  for (const std::uint32_t word : {0x7FFFFFFFU, nan_word}) {
    std::string forged(size, '\0');
    for (std::size_t at = 0; at + 4 <= size; at += 4) std::memcpy(forged.data() + at, &word, 4);
    put(path() / "slow.bin", forged);
    forge();
    for (const Placement placement : {Placement::memory, Placement::disk}) {
      const Index index = Index::open(path(), {.placement = placement}).value();
      EXPECT_THROW((void)index.search(queries_, 10, kSearch), EnvironmentError);
    }
  }
}

/// Whatever bytes a hostile index has, its checksums forged: a sentence, an error of the query, or answers.
TEST_F(SavedIndex, WithAnyBytesIsRefusedOrAnswersOrFailsAloud) {
  SplitMix random(5);
  int refused = 0, failed = 0, answered = 0;
  for (int round = 0; round < 60; ++round) {
    const char* name = round % 2 == 0 ? "fast.bin" : "slow.bin";
    const std::string whole = contents(path() / name);
    std::string forged = whole;
    for (int i = 0; i < 1 << (round % 8); ++i)
      forged[random.below(forged.size())] = static_cast<char>(random.next());
    put(path() / name, forged);
    forge();
    for (const Placement placement : {Placement::memory, Placement::disk}) {
      const auto opened = Index::open(path(), {.placement = placement});
      if (!opened) {
        EXPECT_FALSE(opened.error().message.empty());
        ++refused;
        continue;
      }
      try {
        const Neighbours found = opened->search(queries_, 10, kSearch).value();
        for (const auto& list : found) EXPECT_EQ(list.size(), 10U);
        ++answered;
      } catch (const EnvironmentError&) {
        ++failed;
      }
    }
    put(path() / name, whole);
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(failed, 0);
  EXPECT_GT(answered, 0);
}

TEST_F(SavedIndex, OnADiskNeedsItsCache) {
  const auto refused = Index::open(path(), {.placement = Placement::disk, .cache = 4_KB});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("give it at least"), std::string::npos);
}

TEST(Manifest, ReadsBackWhatItWrote) {
  Manifest manifest{Metric::cosine, 3, {{5, 4}, {2, 4}, {1, 2}}, 1, 2, {7}, {9}};
  ASSERT_EQ(pieces_in(manifest.fast_bytes()), 1U);
  EXPECT_EQ(parse_manifest(print_manifest(manifest)).value(), manifest);
  manifest.element = ElementType::u8;
  EXPECT_EQ(parse_manifest(print_manifest(manifest)).value(), manifest);
}

TEST(Manifest, WithSizesThatDoNotFitIsRefused) {
  const std::string good = print_manifest({Metric::l2, 3, {{5, 4}, {2, 4}}, 0, 0, {7}, {9}});
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto parsed = parse_manifest(text);
    return parsed.ok() ? std::string("none") : parsed.error().message;
  };
  EXPECT_NE(changed("\"dimension\": 3", "\"dimension\": 0"), "none");
  EXPECT_NE(changed("\"dimension\": 3", "\"dimension\": 4").find("fingerprint"), std::string::npos);
  EXPECT_NE(changed("\"nodes\": 5", "\"nodes\": 1"), "none") << "a higher layer has no more nodes";
  EXPECT_NE(changed("\"nodes\": 5", "\"nodes\": 99999999").find("checksums"), std::string::npos);
  EXPECT_NE(changed("\"version\": 2", "\"version\": 1"), "none");
  EXPECT_NE(changed("terrace-ann", "other"), "none");
  EXPECT_NE(changed("\"twins\"", "\"element\": \"u8\", \"twins\"").find("fingerprint"), std::string::npos);
  EXPECT_NE(changed("\"twins\"", "\"element\": \"u9\", \"twins\"").find("or u8"), std::string::npos);
  EXPECT_NE(changed("\"l2\"", "\"l9\"").find("choose l2, ip or cosine"), std::string::npos);
}

}  // namespace
}  // namespace terrace::ann
