// SPDX-License-Identifier: Apache-2.0
// Steps on a manager's objects, under every mode of CachedArrays, against the run with all memory.
#include "exec/live_training.hpp"

#include "exec/planned.hpp"
#include "terrace/lifetimes.hpp"
#include "train/synthetic_data.hpp"

namespace terrace {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr float kRate = 0.01F;

/// The losses of some steps, and the bytes that were moved for them.
struct LiveRun {
  std::vector<std::vector<std::byte>> losses;
  Bytes moved;
};

std::string tier(const char* kind, Bytes size, const char* rates = "") {
  return fmt::format("{}:{}{}", kind, to_string(round_up(size, Bytes{4096})), rates);
}

LiveRun run_live(const Program& program, const char* mode, Bytes fast) {
  const std::string memory = tier("dram", fast);
  const std::string slow = tier("emulated", Bytes{256U << 20U}, ",read=20GB/s,write=10GB/s,latency=100ns");
  Manager manager({memory, slow}, mode);
  Trainer source = Trainer::start(program, {.seed = kSeed, .learning_rate = kRate}).value();
  SyntheticData data(program.graph, kSeed);
  LiveRun run;
  {
    LiveTraining live(program, manager, kSeed);
    for (std::uint64_t step = 0; step < 3; ++step) {
      data.fill(step, source);
      live.step({kSeed, step, kRate},
                [&](const Tensor& input, std::span<std::byte> to) {
                  const auto from = source.input_bytes(input.name);
                  std::copy(from.begin(), from.end(), to.begin());
                })
          .value();
      run.losses.push_back(live.result(0));
    }
    manager.settle();
    EXPECT_TRUE(manager.validate().ok());
  }
  for (const auto& from : manager.statistics().links)
    for (const LinkStatistics& link : from) run.moved += link.bytes;
  return run;
}

TEST(LiveTraining, HasTheBitsOfTheRunWithAllMemoryInEveryMode) {
  for (const Graph& graph : {small_resnet(), small_gpt()}) {
    const Program program = compile(graph, 1).value();
    Trainer reference = Trainer::start(program, {.seed = kSeed, .learning_rate = kRate}).value();
    SyntheticData data(program.graph, kSeed);
    std::vector<std::vector<std::byte>> losses;
    for (std::uint64_t step = 0; step < 3; ++step) {
      data.fill(step, reference);
      reference.step();
      losses.push_back(reference.result_bytes(0));
    }
    EXPECT_NE(losses[0], losses[2]) << "weights were updated";
    for (const char* mode : {"none", "L", "LM", "LMP", "async-LMP"}) {
      SCOPED_TRACE(graph.name + " " + mode);
      const LiveRun tight = run_live(program, mode, program.peak * 2 / 5);
      EXPECT_EQ(tight.losses, losses);
      EXPECT_GT(tight.moved, Bytes{0});
    }
    const LiveRun roomy = run_live(program, "LM", program.peak * 4);
    EXPECT_EQ(roomy.losses, losses);
    EXPECT_EQ(roomy.moved, Bytes{0});
  }
}

}  // namespace
}  // namespace terrace
