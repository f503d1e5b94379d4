// SPDX-License-Identifier: Apache-2.0
// No memory beyond the declared capacities plus the counted buffers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/contents.hpp"
#include "support/tiers.hpp"
#include "terrace/manager.hpp"

namespace terrace {
namespace {
using namespace literals;

Bytes resident() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0, pages = 0;
  statm >> total >> pages;
  return Bytes{pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))};
}

TEST(Footprint, StaysWithinCapacitiesAndCountedBuffers) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep shadow memory of their own";
#endif
  const Bytes before = resident();
  Manager manager(open_tiers({"dram:32MiB", "file:footprint.spill:256MiB"}),
                  make_policy("async-LMP").value());
  std::vector<ObjectId> objects;
  for (std::uint64_t i = 0; i < 100; ++i) {
    objects.push_back(manager.create(2_MiB).value());
    write(manager, objects.back(), i);
    manager.archive(objects.back());
  }
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(holds(manager, objects[i], i));
  const Bytes declared = 32_MiB + manager.statistics().buffers;
  EXPECT_LE(resident(), before + declared + 8_MiB) << "8 MiB for stacks, tables and the allocator";
  EXPECT_GE(resident(), before + 32_MiB) << "the measure must see the tier";
}

}  // namespace
}  // namespace terrace
