// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "exec/planned.hpp"

namespace terrace {
namespace {

TEST(Timeline, HasAnIntervalForEveryInstruction) {
  const TemporaryFolder folder;
  const Program program = compile(small_resnet(), 1).value();
  for (const SlowTier& slow : slow_tiers(folder)) {
    SCOPED_TRACE(slow.name);
    const VerifiedPlan proven = plan_for(program, slow);
    const Plan& plan = proven.plan();
    Trainer trainer = Trainer::start(program, proven, slow.machine, {}).value();
    for (std::uint64_t i = 0; i < 2; ++i) step(trainer, i);
    const Timeline& timeline = trainer.timeline();
    ASSERT_EQ(timeline.instructions.size(), plan.instructions.size());
    std::map<std::uint32_t, Interval> transfers;
    Seconds computing{0}, passed{0};
    for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
      const Interval& interval = timeline.instructions[i];
      EXPECT_GE(interval.begin, passed) << i;
      EXPECT_GE(interval.end, interval.begin) << i;
      if (const auto* copy = std::get_if<Copy>(&plan.instructions[i])) {
        EXPECT_GT(interval.length(), Seconds{0}) << i;
        transfers[copy->ticket] = interval;
        passed = interval.begin;
        continue;
      }
      passed = interval.end;
      if (const auto* wait = std::get_if<Wait>(&plan.instructions[i])) {
        EXPECT_LE(transfers.at(wait->ticket).end, interval.end) << i;
      }
      if (std::holds_alternative<terrace::Run>(plan.instructions[i])) {
        EXPECT_GT(interval.length(), Seconds{0}) << i;
        computing += interval.length();
      }
    }
    EXPECT_GE(timeline.step, passed);
    EXPECT_NEAR(timeline.exposed.count(), (timeline.step - computing).count(), 1e-9);
  }
}

TEST(Timeline, CountsTheBytesOfWholeRegions) {
  const TemporaryFolder folder;
  const Program program = compile(small_mobilenet(), 1).value();
  for (const SlowTier& slow : slow_tiers(folder)) {
    SCOPED_TRACE(slow.name);
    const VerifiedPlan proven = plan_for(program, slow);
    Bytes moved[2] = {};
    for (const Instruction& instruction : proven->instructions) {
      const auto* copy = std::get_if<Copy>(&instruction);
      if (copy == nullptr) continue;
      for (const TensorId id : copy->tensors)
        moved[copy->from.index] += round_up(program.graph[id].bytes, slow.machine.tiers[0].granularity);
    }
    const Trainer trainer = Trainer::start(program, proven, slow.machine, {}).value();
    ASSERT_EQ(trainer.timeline().moved.size(), 2U);
    for (const Traffic& traffic : trainer.timeline().moved)
      EXPECT_EQ(traffic.bytes, moved[traffic.from.index]);
    EXPECT_LE(trainer.timeline().peak[0], proven->budget[0]);
    EXPECT_GT(trainer.timeline().peak[0] * 2, proven->budget[0]);
  }
}

TEST(Timeline, OfUnlimitedMemoryHasThePeakOfTheGraph) {
  const Trainer trainer = start_unlimited(small_resnet());
  EXPECT_GE(trainer.timeline().peak[0], trainer.program().peak);
  EXPECT_LE(trainer.timeline().peak[0], trainer.program().arena);
  EXPECT_TRUE(trainer.timeline().moved.empty());
}

/// Memory that says how slow it is and notes what kernels are charged for.
class ChargedTier final : public Tier {
 public:
  ChargedTier(std::unique_ptr<Tier> memory, Bytes& read, Bytes& written)
      : memory_(std::move(memory)), description_(memory_->description()), read_(read), written_(written) {
    description_.read_rate = description_.write_rate = {1e9};
  }
  const TierDescription& description() const noexcept override { return description_; }
  std::byte* memory() noexcept override { return memory_->memory(); }
  void charge(Bytes read, Bytes written, Seconds, std::uint64_t) override {
    read_ += read;
    written_ += written;
  }

 private:
  std::unique_ptr<Tier> memory_;
  TierDescription description_;
  Bytes &read_, &written_;
};

TEST(PlannedTrainer, ChargesKernelsForWhatTheyTouchInSlowMemory) {
  const Program program = compile(small_resnet(), 1).value();
  SlowTier slow = fake_memory();
  slow.options.in_place = 2;
  const VerifiedPlan proven = plan_for(program, slow);
  Bytes expected_read, expected_written, read, written;
  for (const Instruction& instruction : proven->instructions) {
    const auto* run = std::get_if<terrace::Run>(&instruction);
    if (run == nullptr) continue;
    const Kernel& kernel = program.graph[run->kernel];
    auto tier = run->tiers.begin();
    for (const Operand& operand : kernel.inputs)
      if (*tier++ == TierId{1}) expected_read += operand.touched;
    for (const Operand& operand : kernel.outputs)
      if (*tier++ == TierId{1}) expected_written += operand.touched;
    if (kernel.workspace && *tier == TierId{1}) {
      expected_read += program.graph[kernel.workspace].bytes;
      expected_written += program.graph[kernel.workspace].bytes;
    }
  }
  const auto open = [&](const TierSpec& spec) -> Result<std::unique_ptr<Tier>> {
    auto tier = open_tier(spec);
    if (!tier || spec.kind == TierKind::dram) return tier;
    return std::unique_ptr<Tier>(std::make_unique<ChargedTier>(std::move(*tier), read, written));
  };
  Trainer trainer = Trainer::start(program, proven, slow.machine, {.open = open}).value();
  step(trainer, 1);
  EXPECT_GT(expected_read, Bytes{0});
  EXPECT_EQ(read, expected_read);
  EXPECT_EQ(written, expected_written);
}

}  // namespace
}  // namespace terrace
