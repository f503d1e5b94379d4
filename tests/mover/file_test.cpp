// SPDX-License-Identifier: Apache-2.0
// The mover over real files, through io_uring and through threads.
#include <gtest/gtest.h>

#include "rig.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {
using namespace terrace::testing;
using namespace literals;

TEST(Files, KeepEveryByte) {
  TemporaryFolder folder;
  const auto memory = open_tier("dram:8MiB").value();
  const auto other = open_tier("dram:8MiB").value();
  // Either may fall back to the page cache where the folder takes no direct I/O.
  const auto ring = open_tier("file:" + (folder.path() / "ring").string() + ":8MiB,buffered").value();
  const auto pool = open_tier("file:" + (folder.path() / "pool").string() + ":8MiB,buffered,pool").value();
  std::vector<Tier*> tiers{memory.get(), other.get(), ring.get(), pool.get()};
  std::vector<Content> shadow;
  for (Tier* tier : tiers) {
    shadow.push_back(random_content(tier->description().capacity.count, shadow.size()));
    put(*tier, shadow.back());
  }
  {
    Mover mover(tiers, {.chunk = 64_KiB, .bounce = 1_MiB});
    std::mt19937_64 random(11);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t unit = i % 3 == 0 ? 1 : 4096, half = 4 * kMiB;
      const std::uint64_t bytes = (1 + random() % (kMiB / unit)) * unit;
      const auto from = static_cast<std::uint32_t>(random() % 4),
                 to = static_cast<std::uint32_t>(random() % 4);
      const std::uint64_t source = random() % ((half - bytes) / unit) * unit;
      const std::uint64_t target = half + random() % ((half - bytes) / unit) * unit;
      mover.move({exact(from, source, to, target, bytes)});
      std::memcpy(shadow[to].data() + target, shadow[from].data() + source, bytes);
    }
  }
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    EXPECT_EQ(get(*tiers[i]), shadow[i]) << tiers[i]->description().name;
  }
}

}  // namespace
}  // namespace terrace
