// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "terrace/tier_spec.hpp"

namespace terrace {
namespace {
using namespace literals;

TEST(Spec, PrintsCanonicalTextAsWritten) {
  for (const char* text :
       {"dram:8GiB", "dram:8GiB,huge", "numa:1:8GiB", "numa:0*3+1:8GiB,huge,threads=4",
        "dax:/mnt/pmem/terrace:64GiB,keep", "file:/data/spill:200GiB",
        "file:/data/spill:200GiB,keep,pool,buffered,block=4MiB,depth=32,threads=2", "file:relative/name:1GB",
        "emulated:768GiB,read=39GB/s,write=13GB/s,latency=304ns", "emulated:1GiB,read=1GB/s,write=1GB/s,huge",
        "fake:1MiB", "fake:1MiB,blocks,block=4KiB", "fake:1MiB,device", "cuda:0:100GiB",
        "cuda:3:1GiB,threads=2", "pinned:64GiB"}) {
    const auto spec = parse_tier_spec(text);
    ASSERT_TRUE(spec) << text << ": " << spec.error().message;
    EXPECT_EQ(to_string(*spec), text);
  }
}

TEST(Spec, ReadsEveryField) {
  const TierSpec file =
      parse_tier_spec("file:/d:2GiB,depth=7,block=1KiB,pool,keep,threads=3,buffered").value();
  EXPECT_EQ(file.kind, TierKind::file);
  EXPECT_EQ(file.path, "/d");
  EXPECT_EQ(file.capacity, 2_GiB);
  EXPECT_EQ(file.block, 1_KiB);
  EXPECT_EQ(file.depth, 7u);
  EXPECT_EQ(file.threads, 3u);
  EXPECT_TRUE(file.keep && file.force_pool && file.buffered);

  const TierSpec numa = parse_tier_spec("numa:0*3+12:4096").value();
  EXPECT_EQ(numa.nodes, (std::vector<NodeWeight>{{0, 3}, {12, 1}}));
  EXPECT_EQ(numa.capacity, 4_KiB);

  const TierSpec emulated = parse_tier_spec("emulated:1GiB,latency=304ns,write=13GB/s,read=39GB/s").value();
  EXPECT_EQ(emulated.read_rate, BytesPerSecond{39e9});
  EXPECT_EQ(emulated.write_rate, BytesPerSecond{13e9});
  EXPECT_EQ(emulated.latency, parse_time("304ns").value());
}

TEST(Spec, TakesTheLastSizeBehindAPathWithColonsAndCommas) {
  const auto path = [](const char* text) { return parse_tier_spec(text).value().path; };
  EXPECT_EQ(path("file:/a:1GiB:2GiB"), "/a:1GiB");
  EXPECT_EQ(path("file:/a,b:c:2GiB,keep"), "/a,b:c");
  EXPECT_EQ(path("file:/a:1GiB,keep:2GiB"), "/a:1GiB,keep");
  EXPECT_EQ(path("file::::2GiB"), "::");
  EXPECT_EQ(path("dax:C:x:8:16"), "C:x:8");
}

struct Refusal {
  const char* text;
  const char* says;
};

TEST(Spec, RefusesWithASentenceThatNamesTheOffendingPart) {
  const Refusal refusals[] = {
      {"", "the kinds are dram, numa, dax, file, emulated, fake, cuda, pinned"},
      {"dran:8GiB", "did you mean 'dram'?"},
      {"emulatd:8GiB", "did you mean 'emulated'?"},
      {"DRAM:8GiB", "is no kind"},
      {"dram", "no size"},
      {"dram:", "no size"},
      {"dram:,huge", "no size"},
      {"dram:lots", "'lots' is not an amount of memory"},
      {"dram:0", "zero bytes"},
      {"file:/a:0GiB", "zero bytes"},
      {"dram:2097152TiB", "more than the 1048576TiB"},
      {"dram:8GiB,hug", "'hug' is no option"},
      {"dram:8GiB,", "'' is no option"},
      {"dram:8GiB,keep", "'keep' is not an option of this kind of tier: dram takes huge, threads"},
      {"dram:8GiB,blocks", "dram takes"},
      {"file:/a:1GiB,huge", "file takes"},
      {"dax:/a:1GiB,depth=2", "dax takes"},
      {"emulated:1GiB,read=1GB/s,write=1GB/s,block=512", "emulated takes"},
      {"dram:8GiB,huge,huge", "'huge' is given twice"},
      {"file:/a:1GiB,depth=1,depth=2", "'depth' is given twice"},
      {"dram:8GiB,huge=yes", "takes no value"},
      {"dram:8GiB,threads", "'threads' needs a value"},
      {"dram:8GiB,threads=0", "from 1 to 256"},
      {"dram:8GiB,threads=257", "from 1 to 256"},
      {"dram:8GiB,threads=-1", "from 1 to 256"},
      {"file:/a:1GiB,depth=0", "from 1 to 4096"},
      {"file:/a:1GiB,depth=4097", "from 1 to 4096"},
      {"file:/a:1GiB,depth=99999999999", "from 1 to 4096"},
      {"file:/a:1GiB,block=256", "power of two"},
      {"file:/a:1GiB,block=768", "power of two"},
      {"file:/a:1GiB,block=0", "power of two"},
      {"file:/a:1GiB,block=x", "'x' is not an amount"},
      {"file:/a", "no size"},
      {"file::1GiB", "no path"},
      {"file:1GiB", "no size"},
      {"file:", "no size"},
      {"numa:8GiB", "no list of nodes"},
      {"numa:1:", "no size"},
      {"numa::8GiB", "node list ''"},
      {"numa:x:8GiB", "'x' in the node list"},
      {"numa:0+:8GiB", "'' in the node list"},
      {"numa:0*0:8GiB", "weight"},
      {"numa:0*:8GiB", "weight"},
      {"numa:0*1001:8GiB", "weight"},
      {"numa:1024:8GiB", "node"},
      {"numa:0+1+0*2:8GiB", "node 0 stands twice"},
      {"numa:-1:8GiB", "'-1' in the node list"},
      {"cuda:8GiB", "no number of a GPU"},
      {"cuda:0:", "no size"},
      {"cuda:x:8GiB", "'x' is not the number of a GPU"},
      {"cuda:1024:8GiB", "not the number of a GPU"},
      {"cuda:0:8GiB,huge", "cuda takes threads"},
      {"pinned:0:8GiB", "is not an amount"},
      {"fake:1MiB,blocks,device", "asks for blocks on a device"},
      {"emulated:64GiB", "declares no read rate"},
      {"emulated:64GiB,read=1GB/s", "declares no write rate"},
      {"emulated:64GiB,write=1GB/s", "declares no read rate"},
      {"emulated:64GiB,read=0GB/s,write=1GB/s", "rate from"},
      {"emulated:64GiB,read=fast,write=1GB/s", "'fast' is not a rate"},
      {"emulated:64GiB,read=1GB/s,write=1GB/s,latency=2s", "longer than"},
      {"emulated:64GiB,read=1GB/s,write=1GB/s,latency=soon", "'soon' is not a time"},
  };
  for (const auto& [text, says] : refusals) {
    const auto spec = parse_tier_spec(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::invalid_argument) << text;
    EXPECT_NE(spec.error().message.find(says), std::string::npos) << text << " -> " << spec.error().message;
    EXPECT_EQ(spec.error().message.find('\n'), std::string::npos) << text;
  }
}

TEST(Spec, RefusesAPathWithAZeroByte) {
  EXPECT_FALSE(parse_tier_spec(std::string_view("file:/a\0b:1GiB", 14)));
}

class SpecProperty : public testing::Test {
 protected:
  bool chance() { return random_() % 2 == 0; }
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  std::string path() {
    static constexpr std::string_view letters = "ab/:,=+*.0 1GiB";
    std::string text;
    for (std::uint64_t i = 0, n = 1 + below(12); i < n; ++i) text += letters[below(letters.size())];
    return text;
  }

  std::vector<NodeWeight> nodes() {
    std::vector<NodeWeight> list;
    for (unsigned node = 0, n = static_cast<unsigned>(1 + below(5)); node < n; ++node) {
      list.push_back({node * 7, static_cast<unsigned>(1 + below(1000))});
    }
    return list;
  }

  BytesPerSecond rate() { return {1e3 + std::ldexp(static_cast<double>(random_() >> 11), -11)}; }

  void set_options(TierSpec& spec) {
    const bool file = spec.kind == TierKind::file, fake = spec.kind == TierKind::fake;
    const bool mapped = file || spec.kind == TierKind::dax;
    const bool gpu = spec.kind == TierKind::cuda || spec.kind == TierKind::pinned;
    if (!mapped && !fake && !gpu) spec.huge_pages = chance();
    if (mapped) spec.keep = chance();
    if (file) spec.force_pool = chance(), spec.buffered = chance();
    if (file && chance()) spec.read_rate = rate();
    if (file && chance()) spec.write_rate = rate();
    if (file && chance()) spec.depth = static_cast<unsigned>(1 + below(4096));
    if (fake) spec.blocks = chance();
    if ((file || fake) && chance()) spec.block = Bytes{512ull << below(22)};
    if (fake && !spec.blocks && spec.block.count == 0) spec.on_device = chance();
    if (chance()) spec.threads = static_cast<unsigned>(1 + below(256));
  }

  TierSpec spec() {
    TierSpec spec;
    spec.kind = static_cast<TierKind>(below(8));
    spec.capacity = Bytes{1 + (random_() >> (4 + below(60)))};
    if (spec.kind == TierKind::file || spec.kind == TierKind::dax) spec.path = path();
    if (spec.kind == TierKind::numa) spec.nodes = nodes();
    if (spec.kind == TierKind::cuda) spec.gpu = static_cast<unsigned>(below(1024));
    if (spec.kind == TierKind::emulated) {
      spec.read_rate = rate();
      spec.write_rate = rate();
      if (chance()) spec.latency = Seconds{std::ldexp(static_cast<double>(random_() >> 11), -53)};
    }
    set_options(spec);
    return spec;
  }

 private:
  std::mt19937_64 random_{42};
};

TEST_F(SpecProperty, ReadsBackWhatItPrints) {
  for (int i = 0; i < 20000; ++i) {
    const TierSpec written = spec();
    const std::string text = to_string(written);
    const auto read = parse_tier_spec(text);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    ASSERT_EQ(*read, written) << text << " read back as " << to_string(*read);
    ASSERT_EQ(to_string(*read), text);
  }
}

}  // namespace
}  // namespace terrace
