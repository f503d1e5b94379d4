// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/temporary_tree.hpp"
#include "profile/computer_name.hpp"
#include "profile/processor_use.hpp"

namespace terrace {
namespace {

TEST(ComputerName, IsWhatTheKernelSays) {
  const test::TemporaryTree tree;
  tree.write("proc/cpuinfo",
             "processor\t: 0\nmodel name\t: Abacus 7: fast\nprocessor\t: 1\nmodel name\t: B\n");
  tree.write("proc/sys/kernel/osrelease", "6.1.0\n");
  const ComputerName name = computer_name(tree.path());
  EXPECT_EQ(name.processor, "Abacus 7: fast");
  EXPECT_EQ(name.kernel, "6.1.0");
  EXPECT_GT(name.cores, 0U);
}

TEST(ComputerName, IsUnknownWhereTheKernelIsSilent) {
  const test::TemporaryTree tree;
  EXPECT_EQ(computer_name(tree.path()).processor, "unknown processor");
}

TEST(ProcessorUse, CountsAllButIdleAndWaiting) {
  const test::TemporaryTree tree;
  tree.write("proc/stat", "cpu  100 20 300 9999 8888 1 2 77 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
  const ProcessorUse use = processor_use(tree.path());
  ASSERT_TRUE(use.all);
  EXPECT_DOUBLE_EQ(*use.all * static_cast<double>(sysconf(_SC_CLK_TCK)) / Seconds{1}, 500);
  EXPECT_GT(use.own.count(), 0);
  tree.write("proc/stat", "nonsense\n");
  EXPECT_FALSE(processor_use(tree.path()).all);
}

TEST(Disturbance, IsWhatOthersComputed) {
  const ProcessorUse start{Seconds{100}, Seconds{5}, Seconds{1000}};
  // Twenty seconds of the processor in ten, of which fifteen are our own.
  const ProcessorUse half{Seconds{120}, Seconds{20}, Seconds{1010}};
  EXPECT_EQ(disturbance(start, half),
            "other programs kept 0.5 cores busy meanwhile: measure again when they rest");
  EXPECT_EQ(disturbance(start, {Seconds{120}, Seconds{24}, Seconds{1010}}), "") << "a tenth is noise";
  EXPECT_EQ(disturbance(start, {std::nullopt, Seconds{6}, Seconds{1010}}), "");
  EXPECT_EQ(disturbance(start, start), "") << "no time, no share";
}

}  // namespace
}  // namespace terrace
