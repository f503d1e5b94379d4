// SPDX-License-Identifier: Apache-2.0
// A plan issued to queues gives the bits of the synchronous runner and of the graph alone, whatever order the
// queues work in.
#include "queues/rig.hpp"
#include "support/long_tests.hpp"

namespace terrace {
namespace {

enum class Kind { eager, random, lazy, lazy_without_flags, random_without_flags, cuda };

std::shared_ptr<FakeDevice> fake_of(Kind kind, std::uint64_t seed) {
  using Flags = FakeDevice::Flags;
  switch (kind) {
    case Kind::eager:
      return std::make_shared<FakeDevice>(Schedule::eager, seed);
    case Kind::random:
      return std::make_shared<FakeDevice>(Schedule::random, seed);
    case Kind::lazy:
      return std::make_shared<FakeDevice>(Schedule::lazy, seed);
    case Kind::lazy_without_flags:
      return std::make_shared<FakeDevice>(Schedule::lazy, seed, Flags::refused);
    case Kind::random_without_flags:
      return std::make_shared<FakeDevice>(Schedule::random, seed, Flags::refused);
    case Kind::cuda:
      break;
  }
  return nullptr;
}

class QueueRunnerOn : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() != Kind::cuda) return;
    static const auto gpu = open_cuda_device(0);
    if (!gpu) GTEST_SKIP() << gpu.error().message;
    const auto kernels = synthetic_kernels(**gpu);
    if (!kernels) GTEST_SKIP() << kernels.error().message;
  }
};
std::string name_of(const testing::TestParamInfo<Kind>& kind) {
  static const std::vector<std::string> names{
      "FakeEager", "FakeRandom", "FakeLazy", "FakeLazyWithoutFlags", "FakeRandomWithoutFlags", "Cuda"};
  return names[static_cast<std::size_t>(kind.param)];
}
INSTANTIATE_TEST_SUITE_P(Of, QueueRunnerOn,
                         testing::Values(Kind::eager, Kind::random, Kind::lazy, Kind::lazy_without_flags,
                                         Kind::random_without_flags, Kind::cuda),
                         name_of);

TEST_P(QueueRunnerOn, GivesTheBitsOfTheSynchronousRunner) {
  std::size_t copies = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(30, 1000); ++seed) {
    const Planned planned = random_planned(seed);
    const std::vector<Kept> expected = run_synchronously(planned, 2);
    OnDevice device(planned, fake_of(GetParam(), seed));
    for (std::uint64_t step = 0; step < 2; ++step)
      ASSERT_EQ(device.step(step, step == 0), expected[step]) << "seed " << seed << " step " << step;
    ASSERT_EQ(device.violations(), std::vector<std::string>{}) << "seed " << seed;
    for (const QueueAction& action : device.runner.script().actions)
      copies += std::holds_alternative<QueueCopies>(action.what);
  }
  EXPECT_GT(copies, 100u) << "plans move bytes by queues";
}

// Synthetic kernels depend on the step's number, so here every step is the first one.
TEST_P(QueueRunnerOn, GivesTheSameBitsWithKernelsInBundles) {
  std::size_t bundles = 0, launches = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(30, 1000); ++seed) {
    const Planned planned = random_planned(seed);
    const Kept expected = run_synchronously(planned, 1).front();
    OnDevice device(planned, fake_of(GetParam(), seed));
    for (const std::uint32_t every : {1u, 2u, 3u}) {
      device.runner.bundle([&](std::uint32_t kernel) { return kernel % every == 0; }, {7, 0, 0});
      bundles += device.runner.bundles();
      for (int i = 0; i < 2; ++i)
        ASSERT_EQ(device.step(0, true), expected) << "seed " << seed << " every " << every;
    }
    device.runner.unbundle();
    ASSERT_EQ(device.step(0, true), expected) << "seed " << seed;
    ASSERT_EQ(device.violations(), std::vector<std::string>{}) << "seed " << seed;
    for (const QueueAction& action : device.runner.script().actions)
      launches += std::holds_alternative<QueueLaunch>(action.what);
  }
  EXPECT_GT(bundles, launches / 2);
  EXPECT_LT(bundles, launches * 11 / 6) << "some bundles hold several";
}

TEST(SynchronousRunner, GivesTheBitsOfTheGraphAlone) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Planned planned = random_planned(seed);
    const Kept plain = run_plainly(planned.graph);
    const Kept kept = run_synchronously(planned, 1).front();
    for (const auto& [place, bytes] : kept) ASSERT_EQ(bytes, plain.at({place.first, 0})) << "seed " << seed;
  }
}

}  // namespace
}  // namespace terrace
