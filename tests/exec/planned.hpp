// SPDX-License-Identifier: Apache-2.0
// Trainers under a spilling plan, over slow tiers of every kind.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "backends/processor.hpp"
#include "exec/nets.hpp"
#include "exec/spill_plan.hpp"
#include "exec/store.hpp"
#include "support/long_tests.hpp"
#include "tiers/fake.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {

struct SlowTier {
  std::string name;
  Machine machine;
  SpillOptions options = {};
};

inline SlowTier fake_blocks() { return {"fake blocks", two_tiers("fake:1MiB,blocks", {64}, {512}, false)}; }

inline SlowTier fake_memory() { return {"fake memory", two_tiers("fake:1MiB")}; }

inline std::vector<SlowTier> slow_tiers(const TemporaryFolder& folder) {
  const std::string emulated = "emulated:1GiB,read=20GB/s,write=10GB/s,latency=100ns";
  const std::string file = "file:" + (folder / "spill") + ":1GiB,buffered";
  return {{"emulated", two_tiers(emulated)},
          {"emulated, used in place", two_tiers(emulated), {.in_place = 3}},
          fake_memory(),
          fake_blocks(),
          {"fake blocks, aligned", two_tiers("fake:1MiB,blocks", {512}, {512}, false)},
          {"file", two_tiers(file, {64}, {4096}, false)},
          {"file, aligned", two_tiers(file, {4096}, {4096}, false)}};
}

/// Of the slow tiers one of each sort: used in place, memory, blocks, a file. Long tests have them all.
inline std::vector<SlowTier> slow_tiers_of_each_sort(const TemporaryFolder& folder) {
  std::vector<SlowTier> tiers = slow_tiers(folder);
  if (long_tests()) return tiers;
  return {tiers[1], tiers[2], tiers[3], tiers[5]};
}

inline VerifiedPlan plan_for(const Program& program, const SlowTier& slow) {
  return verify(program.graph, slow.machine, spill_plan(program.graph, slow.machine, slow.options)).value();
}

inline Trainer start_unlimited(const Graph& graph, unsigned threads = 1) {
  return Trainer::start(compile(graph, threads).value(), {.seed = 1, .learning_rate = 0.01F}).value();
}

inline Trainer start(const Graph& graph, const SlowTier& slow,
                     const TrainerOptions& options = {.seed = 1, .learning_rate = 0.01F},
                     unsigned threads = 1) {
  const Program program = compile(graph, threads).value();
  return Trainer::start(program, plan_for(program, slow), slow.machine, options).value();
}

/// Opens tiers as ever, and shows the fake one.
inline auto opening(FakeTier*& tier) {
  return [&tier](const TierSpec& spec) {
    auto opened = open_tier(spec);
    if (opened && spec.kind == TierKind::fake) tier = static_cast<FakeTier*>(opened->get());
    return opened;
  };
}

/// Everything persistent in the slow tier between steps, one behind the other from an offset on.
inline Store kept_in_slow_tier(const Graph& graph, const Machine& machine, const OpenTiers& tiers,
                               Bytes offset) {
  Plan plan;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (!graph.tensors[i].persistent) continue;
    plan.start.push_back({{i}, {1}, offset.count});
    offset += round_up(graph.tensors[i].bytes, machine.tiers[1].granularity);
  }
  return {**processor_backend(), graph, machine, plan, tiers};
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline void expect_same_state(const Trainer& a, const Trainer& b) {
  for (const Tensor& tensor : a.program().graph.tensors) {
    if (!tensor.persistent || tensor.type != DataType::f32) continue;
    EXPECT_TRUE(same_bits(a.read(tensor.name), b.read(tensor.name))) << tensor.name;
  }
}

}  // namespace terrace
