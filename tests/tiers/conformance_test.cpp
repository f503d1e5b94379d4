#include "tiers/conformance.hpp"

namespace terrace {
namespace {

const TierCase kTiers[] = {
    {"Dram", "dram:4MiB"},
    {"DramUneven", "dram:1000KB"},
    {"Fake", "fake:256KiB"},
};
const TierCase kBlockTiers[] = {
    {"FakeBlocks", "fake:256KiB,blocks"},
    {"FakeLargeBlocks", "fake:1MB,blocks,block=4KiB"},
};

INSTANTIATE_TEST_SUITE_P(Addressable, TierConformance, testing::ValuesIn(kTiers), tier_case_name);
INSTANTIATE_TEST_SUITE_P(Blocks, TierConformance, testing::ValuesIn(kBlockTiers), tier_case_name);
INSTANTIATE_TEST_SUITE_P(Blocks, BlockConformance, testing::ValuesIn(kBlockTiers), tier_case_name);

}  // namespace
}  // namespace terrace
