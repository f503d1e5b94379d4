// SPDX-License-Identifier: Apache-2.0
#include "report/sharing.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "report/made_up.hpp"

namespace terrace {
namespace {

using Offsets = std::vector<std::uint64_t>;

TEST(LayOut, TakesTheFirstHoleThatIsLargeEnough) {
  const auto facts = facts_of({{.bytes = 640, .first = 0, .last = 0},
                               {.bytes = 64, .first = 0, .last = 9},
                               {.bytes = 128, .first = 1, .last = 1},
                               {.bytes = 1000, .first = 1, .last = 2},
                               {.bytes = 640, .first = 2, .last = 2}});
  EXPECT_EQ(lay_out(facts, Layout::allocation_order), (Offsets{0, 640, 0, 704, 0}));
}

TEST(LayOut, PutsWhatIsUsedTogetherInPagesOfItsOwn) {
  const auto facts = facts_of({{.bytes = 100, .first = 0, .last = 5, .accesses = 9, .used_in = "0 5 "},
                               {.bytes = 100, .first = 0, .last = 5, .accesses = 4, .used_in = "0 3 "},
                               {.bytes = 100, .first = 0, .last = 5, .accesses = 2, .used_in = "0 5 "}});
  const Offsets offsets = lay_out(facts, Layout::grouped);
  EXPECT_EQ(offsets[0], offsets[2] + 128) << "by accesses";
  EXPECT_NE(offsets[0] / 4096, offsets[1] / 4096);
}

/// By brute force: every pair that lives at one time.
void expect_no_overlap(std::span<const TensorFacts> facts, const Offsets& offsets) {
  for (std::size_t i = 0; i < facts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool in_time = facts[i].first <= facts[j].last && facts[j].first <= facts[i].last;
      const bool in_space =
          offsets[i] < offsets[j] + facts[j].bytes.count && offsets[j] < offsets[i] + facts[i].bytes.count;
      EXPECT_FALSE(in_time && in_space) << i << " and " << j;
    }
  }
}

/// The same figures, page by page and pair by pair.
Sharing oracle(std::span<const TensorFacts> facts, const Offsets& offsets) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < facts.size(); ++i) end = std::max(end, offsets[i] + facts[i].bytes.count);
  Sharing result;
  result.by_page_accesses.resize(by_accesses({}).size());
  std::vector<bool> falsely(facts.size());
  for (std::uint64_t page = 0; page * 4096 < end; ++page) {
    std::vector<std::size_t> here;
    double accesses = 0;
    for (std::size_t i = 0; i < facts.size(); ++i) {
      if (offsets[i] >= (page + 1) * 4096 || offsets[i] + facts[i].bytes.count <= page * 4096) continue;
      here.push_back(i);
      accesses += facts[i].accesses;
    }
    if (here.empty()) continue;
    ++result.pages;
    result.by_page_accesses[access_bucket(accesses)] += Bytes{4096};
    bool shared = false, unlike = false, other = false;
    for (const std::size_t i : here) {
      for (const std::size_t j : here) {
        if (i == j || facts[i].first > facts[j].last || facts[j].first > facts[i].last) continue;
        shared = true;
        const bool accessed = access_bucket(facts[i].accesses) != access_bucket(facts[j].accesses);
        const bool lived = lifetime_bucket(facts[i].layers) != lifetime_bucket(facts[j].layers);
        unlike = unlike || accessed;
        other = other || lived;
        if (accessed || lived) falsely[i] = true;
      }
    }
    result.shared += shared;
    result.unlike_accesses += unlike;
    result.unlike_lifetimes += other;
    result.falsely_shared += unlike || other;
  }
  result.tensors = static_cast<std::size_t>(std::count(falsely.begin(), falsely.end(), true));
  return result;
}

std::vector<TensorFacts> random_facts(std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<MadeUp> tensors;
  for (int i = 0; i < 60; ++i) {
    MadeUp one{.bytes = 1 + random.below(random.below(2) == 0 ? 500 : 20000), .first = 0, .last = 0};
    one.first = static_cast<std::uint32_t>(random.below(30));
    one.last = one.first + static_cast<std::uint32_t>(random.below(10));
    one.layers = static_cast<std::uint32_t>(random.below(8));
    one.accesses = static_cast<double>(random.below(14));
    one.used_in = std::to_string(random.below(6)) + " ";
    tensors.push_back(one);
  }
  return facts_of(tensors);
}

TEST(Sharing, IsWhatTheDefinitionSays) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto facts = random_facts(seed);
    for (const Layout layout : {Layout::allocation_order, Layout::grouped}) {
      SCOPED_TRACE(seed);
      const Offsets offsets = lay_out(facts, layout);
      expect_no_overlap(facts, offsets);
      const Sharing found = sharing(facts, offsets), wanted = oracle(facts, offsets);
      EXPECT_EQ(found.pages, wanted.pages);
      EXPECT_EQ(found.shared, wanted.shared);
      EXPECT_EQ(found.unlike_accesses, wanted.unlike_accesses);
      EXPECT_EQ(found.unlike_lifetimes, wanted.unlike_lifetimes);
      EXPECT_EQ(found.falsely_shared, wanted.falsely_shared);
      EXPECT_EQ(found.tensors, wanted.tensors);
      EXPECT_EQ(found.by_page_accesses, wanted.by_page_accesses);
      EXPECT_GT(wanted.shared, 0U);
      EXPECT_EQ(wanted.unlike_lifetimes > 0, layout == Layout::allocation_order);
    }
  }
}

}  // namespace
}  // namespace terrace
