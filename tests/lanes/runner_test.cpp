// SPDX-License-Identifier: Apache-2.0
// Plans for several lanes, carried out by threads on real memory: same bytes as plain execution, whatever is
// late.
#include "exec/runner.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lanes/lane_case.hpp"
#include "support/long_tests.hpp"
#include "support/plan_interpreter.hpp"
#include "terrace/error.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

using testing::machine_of;
using testing::spread_case;
using testing::SpreadCase;

/// Outputs are a hash of all inputs, as the interpreter has them.
class HashKernel : public RunnableKernel {
 public:
  HashKernel(const Graph& graph, KernelId id) : graph_(graph), id_(id) {}

  void run(std::span<std::byte* const> operands, const StepContext&) override {
    EXPECT_FALSE(running_.exchange(true)) << "a kernel runs twice at once";
    const Kernel& kernel = graph_[id_];
    std::uint64_t read = 0;
    std::size_t next = 0;
    for (const Operand& input : kernel.inputs)
      read = interpreter::digest(read, operands[next++], graph_[input.tensor].bytes.count);
    for (std::size_t o = 0; o < kernel.outputs.size(); ++o)
      interpreter::fill(operands[next++], graph_[kernel.outputs[o].tensor].bytes.count,
                        interpreter::output_seed(id_.index, o, read));
    running_ = false;
  }

 private:
  const Graph& graph_;
  KernelId id_;
  std::atomic<bool> running_{false};
};

Kernels hash_kernels(const Graph& graph) {
  Kernels kernels;
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    auto& variants = kernels.emplace_back();
    for (std::size_t v = 0; v < variant_count(graph.kernels[k]); ++v)
      variants.push_back(std::make_unique<HashKernel>(graph, KernelId{k}));
  }
  return kernels;
}

/// Carries out a plan on real memory and remembers what it left.
class Execution {
 public:
  Execution(const SpreadCase& it, const Plan& plan, LaneOptions options)
      : graph_(it.graph),
        plan_(plan),
        tiers_(OpenTiers::open({it.graph.name, it.machine, plan.budget}).value()),
        kernels_(hash_kernels(it.graph)),
        end_(it.graph, it.machine, plan),
        runner_(resolve(it.graph, it.machine, plan, tiers_), plan.instructions.size(), tiers_, kernels_,
                std::move(options)) {
    for (const Instruction& one : plan.instructions) end_.apply(one);
  }

  void step(std::uint32_t number) {
    for (const Alloc& region : plan_.start) {
      const Tensor& tensor = graph_[region.tensor];
      const bool given = tensor.persistent ? number == 0 : tensor.kind == TensorKind::input;
      if (given) fill(region, number);
    }
    runner_.step({});
    for (const TensorId result : graph_.results) left_[{number, result.index}] = read(result);
  }
  StepBytes run(std::uint32_t steps) {
    for (std::uint32_t i = 0; i < steps; ++i) step(i);
    for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
      if (graph_.tensors[i].persistent) left_[{steps, i}] = read({i});
    }
    return left_;
  }
  const Timeline& timeline() const { return runner_.timeline(); }

 private:
  void fill(const Alloc& region, std::uint32_t step) {
    TensorBytes bytes(graph_[region.tensor].bytes.count);
    interpreter::fill(bytes.data(), bytes.size(), interpreter::given(region.tensor.index, step));
    if (!bytes.empty()) tiers_.write(bytes, {region.tier, region.offset});
  }
  TensorBytes read(TensorId tensor) const {
    TensorBytes bytes(graph_[tensor].bytes.count);
    if (!bytes.empty()) tiers_.read(end_.addresses(tensor).front(), bytes);
    return bytes;
  }

  const Graph& graph_;
  const Plan& plan_;
  const OpenTiers tiers_;
  const Kernels kernels_;
  Residence end_;
  StepBytes left_;
  Runner runner_;
};

/// Sleeps before some instructions, for up to a fifth of a millisecond.
LaneOptions with_delays(std::uint64_t seed) {
  return {{}, [seed](std::uint32_t instruction) {
            SplitMix random(seed * 7919 + instruction);
            if (random.below(3) == 0)
              std::this_thread::sleep_for(std::chrono::microseconds(random.below(200)));
          }};
}

TEST(LaneRunner, LeavesTheBytesOfPlainExecutionWhateverIsLate) {
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(40, 1'000); ++seed) {
    SCOPED_TRACE(seed);
    const SpreadCase it = spread_case(seed);
    const StepBytes plain = plain_steps(it.graph, 2);
    for (std::uint64_t delays = 0; delays < 2; ++delays)
      ASSERT_EQ(Execution(it, it.plan, with_delays(seed * 2 + delays)).run(2), plain);
    ASSERT_EQ(Execution(it, it.serial, {}).run(2), plain);
  }
}

TEST(LaneRunner, TellsWhenEverythingHappened) {
  const SpreadCase it = spread_case(5);
  Execution execution(it, it.plan, {});
  execution.run(2);
  const Timeline& timeline = execution.timeline();
  ASSERT_EQ(timeline.instructions.size(), it.plan.instructions.size());
  for (std::size_t i = 0; i < timeline.instructions.size(); ++i) {
    EXPECT_LE(timeline.instructions[i].begin, timeline.instructions[i].end) << i;
    EXPECT_LE(timeline.instructions[i].end, timeline.step) << i;
  }
  EXPECT_GE(timeline.exposed, Seconds{0});
}

/// What a plan carries to `slow` and back between its two kernels.
enum class Carried { token, token_and_tensor };

/// draw: a, token = f(token)    use: z = h(a). A token has no bytes, and `slow` stays closed where nothing
/// else needs it.
SpreadCase with_token(Carried carried) {
  const TensorId token{0}, a{1}, z{2};
  const TierId fast{0}, slow{1};
  SpreadCase made{{}, machine_of(2), {}, {}};
  made.graph.name = "with a token";
  made.graph.layers = {"all"};
  for (const char* name : {"token", "a", "z"}) {
    Tensor& tensor = made.graph.tensors.emplace_back();
    tensor.name = name;
    tensor.kind = made.graph.tensors.size() == 1 ? TensorKind::token : TensorKind::activation;
    tensor.persistent = tensor.kind == TensorKind::token;
    tensor.type = DataType::u8;
    tensor.shape = {tensor.persistent ? 0 : 100};
    tensor.bytes = Bytes{tensor.persistent ? 0U : 100U};
  }
  const auto kernel = [&](const char* name, const std::vector<TensorId>& inputs,
                          const std::vector<TensorId>& outputs) {
    Kernel& kernel = made.graph.kernels.emplace_back();
    kernel.name = kernel.operation = name;
    const auto operand = [&](TensorId id) {
      return Operand{id, made.graph[id].shape, made.graph[id].bytes, {}};
    };
    for (const TensorId id : inputs) kernel.inputs.push_back(operand(id));
    for (const TensorId id : outputs) kernel.outputs.push_back(operand(id));
  };
  kernel("draw", {token}, {a, token});
  kernel("use", {a}, {z});
  made.graph.results = {z};

  std::vector<TensorId> moved{token};
  if (carried == Carried::token_and_tensor) moved.push_back(a);
  Plan& plan = made.serial;
  plan.graph = fingerprint(made.graph);
  plan.machine = fingerprint(made.machine);
  plan.budget = {Bytes{4096}, Bytes{carried == Carried::token ? 0U : 4096U}};
  plan.start = {{token, fast, 0}};
  plan.instructions = {Alloc{a, fast, 0}, Alloc{z, fast, 192}, terrace::Run{{0}, 0, {fast, fast, fast}}};
  const auto carry = [&](TierId from, TierId to, std::uint32_t ticket) {
    for (const TensorId id : moved) plan.instructions.push_back(Alloc{id, to, 0});
    plan.instructions.push_back(Copy{moved, from, to, ticket});
    plan.instructions.push_back(Wait{ticket});
    for (const TensorId id : moved) plan.instructions.push_back(Free{id, from});
  };
  carry(fast, slow, 1);
  carry(slow, fast, 2);
  plan.instructions.push_back(terrace::Run{{1}, 0, {fast, fast}});
  plan.instructions.push_back(Free{a, fast});
  made.plan = spread(made.graph, made.machine, plan, [](KernelId kernel) { return EngineId{kernel.index}; });
  return made;
}

TEST(LaneRunner, CarriesTokensWhichHaveNoBytes) {
  for (const Carried carried : {Carried::token, Carried::token_and_tensor}) {
    const SpreadCase it = with_token(carried);
    ASSERT_FALSE(has_one_lane(it.plan));
    const StepBytes plain = plain_steps(it.graph, 2);
    for (const Plan& plan : {it.serial, it.plan}) {
      for (const Violation& one : violations(it.graph, it.machine, plan)) ADD_FAILURE() << one.reason;
      Execution execution(it, plan, {});
      EXPECT_EQ(execution.run(2), plain);
      for (const Interval& one : execution.timeline().instructions) {
        EXPECT_GE(one.begin, Seconds{0});
        EXPECT_LE(one.begin, one.end);
        EXPECT_LE(one.end, execution.timeline().step);
      }
    }
  }
}

class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

TEST(LaneRunner, EndsAStepWithTheOneFailureOfAnyInstruction) {
  const SpreadCase it = spread_case(11, 12);
  std::size_t failed = 0;
  for (std::uint32_t broken = 0; broken < it.plan.instructions.size(); ++broken) {
    const Instruction& one = it.plan.instructions[broken];
    if (!std::holds_alternative<terrace::Run>(one) && !std::holds_alternative<Copy>(one)) continue;
    std::atomic<bool> breaks{true};
    Execution execution(it, it.plan, {{}, [&](std::uint32_t instruction) {
                                        if (breaks && instruction == broken) throw Broken("as asked");
                                      }});
    EXPECT_THROW(execution.step(0), Broken) << broken;
    ++failed;
    breaks = false;
    EXPECT_NO_THROW(execution.step(0)) << "no lane is left behind";
  }
  EXPECT_GT(failed, 10U);
}

TEST(LaneRunner, EntersEachEngineOnceOnItsOwnThread) {
  const SpreadCase it = spread_case(3);
  std::mutex mutex;
  std::map<std::uint32_t, std::vector<std::thread::id>> entered;
  Execution execution(it, it.plan,
                      {[&](EngineId engine) {
                         const std::lock_guard lock(mutex);
                         entered[engine.index].push_back(std::this_thread::get_id());
                       },
                       {}});
  execution.run(3);
  std::set<std::thread::id> threads{std::this_thread::get_id()};
  for (const auto& [engine, ids] : entered) {
    EXPECT_EQ(ids.size(), 1U) << engine;
    EXPECT_TRUE(threads.insert(ids[0]).second) << engine;
  }
  EXPECT_EQ(entered.size(), it.machine.engine_count());
}

}  // namespace
}  // namespace terrace
