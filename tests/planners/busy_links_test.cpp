// The clock by which plans are written.
#include <gtest/gtest.h>

#include "migration/busy_links.hpp"

namespace terrace::migration {
namespace {

using namespace literals;

constexpr TierId kFastTier{0}, kSlowTier{1};

/// Both links move a megabyte a second, of which one takes a sixth of the kernels' speed and one a third.
Machine machine_with_links(double both_ways) {
  Machine machine;
  machine.tiers.resize(2);
  const auto link = [&](TierId from, TierId to, double loss) {
    Link made;
    made.from = from;
    made.to = to;
    made.rates = {{1_MB, 1_MB / Seconds{1}}};
    made.both_ways = both_ways;
    made.compute_loss = loss;
    return made;
  };
  machine.links = {link(kFastTier, kSlowTier, 1.0 / 6), link(kSlowTier, kFastTier, 1.0 / 3)};
  return machine;
}

TEST(BusyLinks, TakeFromKernelsWhatTheBusyOneOfALaneTakes) {
  const Machine machine = machine_with_links(0.5);
  BusyLinks links(machine);
  EXPECT_DOUBLE_EQ(links.start(kFastTier, kSlowTier, 6_MB, Seconds{0}).count(), 6);
  EXPECT_DOUBLE_EQ(links.end_of_kernel(Seconds{2.5}, Seconds{0}).count(), 3);
  // The lane is busy with the first until 6.
  EXPECT_DOUBLE_EQ(links.start(kSlowTier, kFastTier, 3_MB, Seconds{3}).count(), 9);
  EXPECT_DOUBLE_EQ(links.end_of_kernel(Seconds{2.5 + 2 + 1}, Seconds{3}).count(), 10);
}

TEST(BusyLinks, SlowKernelsTogetherWhereBothWorkAtOnce) {
  const Machine machine = machine_with_links(1);
  BusyLinks links(machine);
  links.start(kFastTier, kSlowTier, 9_MB, Seconds{0});
  EXPECT_DOUBLE_EQ(links.start(kSlowTier, kFastTier, 9_MB, Seconds{0}).count(), 9);
  EXPECT_DOUBLE_EQ(links.end_of_kernel(Seconds{5}, Seconds{0}).count(), 9);
  EXPECT_DOUBLE_EQ(links.end_of_kernel(Seconds{1}, Seconds{9}).count(), 10);
}

}  // namespace
}  // namespace terrace::migration
