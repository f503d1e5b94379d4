// SPDX-License-Identifier: Apache-2.0
#include "tiers/conformance.hpp"

namespace terrace {
namespace {

const TierCase kTiers[] = {
    {"Dram", "dram:4MiB"},
    {"DramUneven", "dram:1000KB"},
    {"DramHuge", "dram:5MiB,huge"},
    {"Numa", "numa:0:4MiB"},
    {"NumaHuge", "numa:0:4MiB,huge"},
    {"Dax", "dax:FOLDER/memory:4MiB"},
    {"DaxKept", "dax:FOLDER/memory:1000KB,keep"},
    {"Emulated", "emulated:4MiB,read=1000GB/s,write=1000GB/s,latency=1ns"},
    {"Fake", "fake:256KiB"},
};
const TierCase kBlockTiers[] = {
    {"FakeBlocks", "fake:256KiB,blocks"},
    {"FakeLargeBlocks", "fake:1MB,blocks,block=4KiB"},
};

const TierCase kDeviceTiers[] = {
    {"FakeDevice", "fake:1000KB,device"},
    {"Cuda", "cuda:0:4MiB"},
    {"CudaUneven", "cuda:0:1000KB"},
    {"Pinned", "pinned:5MiB"},
};

INSTANTIATE_TEST_SUITE_P(Addressable, TierConformance, testing::ValuesIn(kTiers), tier_case_name);
INSTANTIATE_TEST_SUITE_P(Blocks, TierConformance, testing::ValuesIn(kBlockTiers), tier_case_name);
INSTANTIATE_TEST_SUITE_P(Devices, TierConformance, testing::ValuesIn(kDeviceTiers), tier_case_name);
INSTANTIATE_TEST_SUITE_P(Blocks, BlockConformance, testing::ValuesIn(kBlockTiers), tier_case_name);

}  // namespace
}  // namespace terrace
