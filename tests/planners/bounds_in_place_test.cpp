// The bound where kernels can use slower memory, against every placement of very small graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/random.hpp"
#include "bounds/relaxation.hpp"
#include "migration/plan_writer.hpp"
#include "plan/step_uses.hpp"
#include "planners/baseline_rig.hpp"
#include "support/graph_by_hand.hpp"
#include "support/random_graph.hpp"
#include "terrace/planner.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

Machine two_memories(double write, double read, double out_loss, double in_loss, double both_ways) {
  Machine machine;
  machine.name = "small";
  machine.source = "tests";
  machine.compute = {"any", 1, 1e9};
  machine.tiers = {{"fast", Bytes{1 << 30}, true, {1e10}, {1e10}, Seconds{0}, Bytes{64}, {}, ""},
                   {"slow", Bytes{1 << 30}, true, {read}, {write}, Seconds{0}, Bytes{64}, {}, ""}};
  machine.links = {{{0}, {1}, {{Bytes{64}, {write}}}, both_ways, out_loss, 1},
                   {{1}, {0}, {{Bytes{64}, {read}}}, both_ways, in_loss, 1}};
  return machine;
}

/// Tries every choice of fast or slow memory for every use; a value follows its uses.
class EveryPlacement {
 public:
  explicit EveryPlacement(const PlanRequest& request) : request_(request), uses_(request.graph) {
    for (std::uint32_t k = 0; k <= uses_.kernels(); ++k) count_ += uses_.of(k).size();
  }

  std::size_t size() const { return count_; }

  Seconds best() const {
    Seconds best{std::numeric_limits<double>::infinity()};
    for (std::uint64_t choice = 0; choice < std::uint64_t{1} << count_; ++choice) {
      const auto plan = write(choice);
      if (plan)
        best = std::min(best, simulate(request_.graph, request_.machine, request_.profile, *plan).step);
    }
    return best;
  }

 private:
  struct Value {
    std::optional<TierId> at, home;
  };

  std::optional<Plan> write(std::uint64_t choice) const {
    PlanWriter writer(request_, "every");
    std::vector<Value> values(request_.graph.tensors.size());
    begin(choice, writer, values);
    for (std::uint32_t k = 0; k <= uses_.kernels(); ++k) {
      for (const Use& use : uses_.of(k)) {
        bring(writer, values, use, tier(choice));
        choice >>= 1U;
      }
      if (k < uses_.kernels()) run(writer, values, k);
    }
    end(writer, values);
    Draft draft = writer.finish({0});
    if (draft.needed[0] > request_.budget[0]) return std::nullopt;
    if (!violations(request_.graph, request_.machine, draft.plan, 1).empty()) return std::nullopt;
    return std::move(draft.plan);
  }

  static TierId tier(std::uint64_t choice) { return {static_cast<std::uint32_t>(choice & 1U)}; }

  /// What is there when the step starts is where its first use wants it.
  void begin(std::uint64_t choice, PlanWriter& writer, std::vector<Value>& values) const {
    for (std::uint32_t k = 0; k <= uses_.kernels(); ++k) {
      for (const Use& use : uses_.of(k)) {
        Value& value = values[use.tensor.index];
        const Tensor& tensor = request_.graph[use.tensor];
        if (!value.home && (tensor.persistent || is_given(tensor)))
          start(writer, use.tensor, value, tier(choice));
        choice >>= 1U;
      }
    }
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      const Tensor& tensor = request_.graph.tensors[i];
      if (!values[i].home && (tensor.persistent || is_given(tensor))) start(writer, {i}, values[i], {1});
    }
  }

  static void start(PlanWriter& writer, TensorId tensor, Value& value, TierId tier) {
    value.at = value.home = tier;
    writer.start(tensor, tier);
  }

  static void bring(PlanWriter& writer, std::vector<Value>& values, const Use& use, TierId tier) {
    Value& value = values[use.tensor.index];
    if (value.at == tier) return;
    value.home == tier ? writer.restore(use.tensor, tier) : writer.alloc(use.tensor, tier);
    if (value.at && use.reads) writer.wait(writer.copy(use.tensor, *value.at, tier));
    if (value.at) writer.free(use.tensor, *value.at);
    value.at = tier;
  }

  void run(PlanWriter& writer, std::vector<Value>& values, std::uint32_t k) const {
    const Kernel& kernel = request_.graph.kernels[k];
    std::vector<TierId> tiers;
    for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
      for (const Operand& operand : *operands) tiers.push_back(*values[operand.tensor.index].at);
    }
    if (kernel.workspace) tiers.push_back(*values[kernel.workspace.index].at);
    writer.run({k}, std::move(tiers));
    for (const Use& use : uses_.of(k)) {
      Value& value = values[use.tensor.index];
      if (use.next != kNever || value.home) continue;
      writer.free(use.tensor, *value.at);
      value.at.reset();
    }
  }

  static void end(PlanWriter& writer, std::vector<Value>& values) {
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      if (values[i].home) bring(writer, values, {{i}, true}, *values[i].home);
    }
  }

  const PlanRequest& request_;
  StepUses uses_;
  std::size_t count_ = 0;
};

TEST(BoundInPlace, IsNotAboveTheBestOfAllPlacementsOfSmallGraphs) {
  constexpr std::size_t kMostUses = 10;
  int compared = 0, binding = 0, near = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SplitMix random(seed);
    RandomGraphOptions options;
    options.kernels = 3 + static_cast<std::uint32_t>(random.below(3));
    options.least = Bytes{1024};
    const Graph graph = random_graph(options, seed);
    const auto some = [&](double unit, std::uint64_t most) {
      return unit * static_cast<double>(random.below(most));
    };
    const double write = 1e8 + some(2e8, 8), read = 2e8 + some(4e8, 8);
    const Machine machine = two_memories(write, read, some(0.1, 5), some(0.1, 5), 0.5 + some(0.1, 6));
    const Profile profile = estimate(graph, machine);
    Bytes all{};
    for (const Tensor& tensor : graph.tensors) all += tensor.bytes;
    const Bytes fast = round_up(all * (1 + random.below(6)) / 10, Bytes{64});
    const PlanRequest request{graph, machine, profile, {fast, Bytes{1 << 30}}};
    const EveryPlacement every(request);
    if (every.size() > kMostUses) continue;
    const Seconds best = every.best();
    ASSERT_LT(best.count(), std::numeric_limits<double>::infinity()) << "case " << seed;
    ++compared;
    const Bound bound = step_bound(request);
    EXPECT_LE(bound.step.count(), best.count() * (1 + 1e-9)) << "case " << seed;
    EXPECT_LE(bound.moving.count(), best.count() * (1 + 1e-9)) << "case " << seed;
    EXPECT_LE(bound.step.count(), bound.moving.count() * (1 + 1e-9));
    if (best.count() < bound.compute.count() * (1 + 1e-6)) continue;
    ++binding;
    if (bound.moving.count() > best.count() * 0.8) ++near;
  }
  // Bounds that never bind, or that nothing comes near, would be of no use.
  EXPECT_GT(compared, 30);
  EXPECT_GT(binding, 15);
  EXPECT_GT(near, binding / 2) << near << " of " << binding << " of " << compared;
}

/// Of x and y, which the first kernel uses, only one fits.
TEST(BoundInPlace, CountsWhatDoesNotFitBesideEachOther) {
  RigGraph rig;
  const TensorId x = rig.tensor("x", kMega, TensorKind::input);
  const TensorId y = rig.tensor("y", kMega, TensorKind::activation);
  const TensorId r = rig.tensor("r", 64, TensorKind::activation);
  rig.kernel("make", {x}, {y}, Phase::forward, 0.5);
  rig.kernel("read", {y}, {r}, Phase::backward, 0.5);
  rig.graph.results = {r};
  // A megabyte takes a second in slow memory, and a copy costs kernels half of its second.
  Machine machine = rig_machine(static_cast<double>(kMega), true);
  for (Link& link : machine.links) link.compute_loss = 0.5;
  const Planned planned(rig.graph, machine);
  EXPECT_NEAR(step_bound(planned.request(3 * kMega)).step.count(), 1, 1e-6);
  const Bound bound = step_bound(planned.request(kMega + 1024));
  EXPECT_GT(bound.step.count(), 1.4);
  EXPECT_LE(bound.moving.count(), 1.5) << "x is used in slow memory for half a second more";
}

/// What is dropped may be made again in fast memory, in a pause, and copied out beside a kernel: cheaper than
/// writing it to slow memory, and without holding it.
TEST(BoundInPlace, LetsThingsBeMadeAgainAndCopiedOut) {
  constexpr std::uint64_t kLarge = 1'024'000;
  ByHand by_hand;
  const TensorId x = by_hand.tensor("x", TensorKind::input, 64),
                 t = by_hand.tensor("t", TensorKind::activation, kLarge),
                 u = by_hand.tensor("u", TensorKind::activation, kLarge),
                 small = by_hand.tensor("small", TensorKind::activation, 64),
                 w = by_hand.tensor("w", TensorKind::activation, kLarge),
                 r = by_hand.tensor("r", TensorKind::activation, 64);
  by_hand.kernel({x}, {t}, Seconds{0.1});
  by_hand.kernel({x}, {u}, Seconds{0.1});
  by_hand.kernel({x}, {small}, Seconds{1});
  by_hand.kernel({t}, {w}, Seconds{0.1});
  by_hand.kernel({w}, {r}, Seconds{0.1});
  Graph& graph = by_hand.graph;
  graph.results = {r};
  ASSERT_TRUE(validate(graph)) << validate(graph).error().message;

  Machine machine = two_memories(kLarge, 1e12, 0.1, 0.1, 1);
  machine.links[1].rates = {{Bytes{64}, {double{kLarge}}}};
  const Profile profile = estimate(graph, machine);
  const PlanRequest request{graph, machine, profile, {Bytes{kLarge + 256}, Bytes{1 << 30}}};
  const KernelClock clock(graph, machine, profile);
  const bounds::Problem problem(request, clock);
  bounds::Multipliers multipliers(problem);
  for (auto* all : {&multipliers.out, &multipliers.in, &multipliers.pause_out, &multipliers.pause_in,
                    &multipliers.operand})
    std::fill(all->begin(), all->end(), 0.0);
  multipliers.memory[1] = multipliers.memory[3] = 0.9 / double{kLarge};
  for (std::size_t i = 0; i < problem.operands.size(); ++i) {
    if (problem.operands[i].seconds > 0.5) multipliers.operand[i] = 0.9;
  }
  multipliers.pause_out[problem.block_of[1]] = 0.5;
  // Run, drop t, run, make t again (0.1 s) and copy it out beside the long kernel (1.1 s), run, run.
  EXPECT_LE(bounds::Relaxation(problem).bound(multipliers, bounds::Recompute::yes), 1.6 + 1e-9);
}

}  // namespace
}  // namespace terrace
