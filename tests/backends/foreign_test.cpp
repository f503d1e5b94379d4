// Any program's step, given as callbacks: it is compiled, measured, planned, verified and executed.
#include "terrace/foreign.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <stdexcept>

#include "graph/tokens.hpp"
#include "support/tiers.hpp"
#include "terrace/planner.hpp"
#include "terrace/trainer.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {
using namespace literals;

/// Builds graphs of u64 numbers, kept as i64.
class Builder {
 public:
  explicit Builder(std::int64_t numbers) : numbers_(numbers) { graph_.layers = {"all"}; }

  TensorId tensor(const std::string& name, TensorKind kind = TensorKind::activation) {
    Tensor& made = graph_.tensors.emplace_back();
    made.name = name;
    made.kind = kind;
    made.persistent = kind == TensorKind::token || kind == TensorKind::weight;
    made.type = DataType::i64;
    made.shape = {kind == TensorKind::token ? 0 : numbers_};
    made.bytes = Bytes{static_cast<std::uint64_t>(made.shape.elements()) * 8};
    return {static_cast<std::uint32_t>(graph_.tensors.size() - 1)};
  }
  Kernel& kernel(const std::string& operation, const std::vector<TensorId>& inputs,
                 const std::vector<TensorId>& outputs) {
    Kernel& made = graph_.kernels.emplace_back();
    made.name = operation + std::to_string(graph_.kernels.size());
    made.operation = operation;
    for (const TensorId id : inputs) made.inputs.push_back({id, graph_[id].shape, graph_[id].bytes, {}});
    for (const TensorId id : outputs) made.outputs.push_back({id, graph_[id].shape, graph_[id].bytes, {}});
    return made;
  }
  Graph& graph() { return graph_; }

 private:
  std::int64_t numbers_;
  Graph graph_;
};

void mix(const ForeignRun& run) {
  const auto out = run.output<std::int64_t>(0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint64_t sum = 0x9E3779B97F4A7C15;
    for (std::size_t k = 0; k < run.inputs.size(); ++k)
      sum = sum * 31 + static_cast<std::uint64_t>(run.input<std::int64_t>(k)[i]);
    out[i] = static_cast<std::int64_t>(sum);
  }
}

/// There and back, as a network's forward and backward pass: all that the way there makes is needed again on
/// the way back. With a token each kernel of the way there draws from one generator.
Graph there_and_back(std::uint32_t length, bool draws) {
  Builder builder(4096);
  const TensorId weight = builder.tensor("weight", TensorKind::weight);
  const TensorId token = draws ? builder.tensor("generator", TensorKind::token) : TensorId{};
  std::vector<TensorId> made{weight};
  for (std::uint32_t i = 0; i < length; ++i) {
    const TensorId next = builder.tensor("a" + std::to_string(i));
    if (draws) {
      builder.kernel("draw", {made.back(), token}, {next, token}).flops = 1;
    } else {
      builder.kernel("mix", {made.back()}, {next}).flops = 1;
    }
    made.push_back(next);
  }
  TensorId back = made.back();
  for (std::uint32_t i = length - 1; i > 0; --i) {
    const TensorId next = builder.tensor("b" + std::to_string(i));
    builder.kernel("mix", {back, made[i]}, {next}).phase = Phase::backward;
    back = next;
  }
  builder.kernel("mix", {weight, back}, {weight}).phase = Phase::update;
  builder.graph().name = "there and back";
  return builder.graph();
}

Machine memory_and_file(const std::filesystem::path& folder) {
  Machine machine = machine_preset("v100-pcie3").value();
  machine.tiers[0].spec = "dram:1GiB";
  machine.tiers[1].spec = "file:" + (folder / "spill").string() + ":1GiB,buffered";
  machine.tiers[1].granularity = 4_KiB;
  return machine;
}

VerifiedPlan planned(const Program& program, const Machine& machine, std::string_view planner, Bytes fast) {
  const Profile profile = measure(program, machine, 64_MiB).value();
  const PlanRequest request{program.graph, machine, profile, {fast, 64_MiB}};
  return verify(program.graph, machine, make_plan(planner, request).value()).value();
}

std::size_t runs(const Plan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.instructions.begin(), plan.instructions.end(),
                    [](const Instruction& one) { return std::holds_alternative<Run>(one); }));
}

TEST(Foreign, GivesTheSameBitsInLittleMemoryUnderEveryPlannerOfItsKind) {
  const TemporaryFolder folder;
  const Machine machine = memory_and_file(folder.path());
  const Program program = compile(there_and_back(30, false), foreign_backend({{"mix", mix}})).value();
  Trainer unlimited = Trainer::start(program, {}).value();
  for (int step = 0; step < 3; ++step) unlimited.step();
  for (const char* planner : {"best", "prefetch", "sentinel", "capuchin"}) {
    SCOPED_TRACE(planner);
    const VerifiedPlan plan = planned(program, machine, planner, program.peak / 4);
    Trainer limited = Trainer::start(program, plan, machine, {}).value();
    for (int step = 0; step < 3; ++step) limited.step();
    EXPECT_EQ(limited.read_bytes("weight"), unlimited.read_bytes("weight"));
    EXPECT_LE(limited.timeline().peak[0], program.peak / 4);
  }
}

TEST(Foreign, IsNotRecomputedWhereItUsesStateOutsideOfItsOperands) {
  const TemporaryFolder folder;
  Machine machine = memory_and_file(folder.path());
  // Moving is so slow that whatever can be is recomputed.
  for (Link& link : machine.links) link.rates = {{1_MiB, {1e6}}};
  std::mt19937_64 generator;
  std::size_t drawn = 0;
  const auto backend =
      foreign_backend({{"mix", mix}, {"draw", [&](const ForeignRun& run) {
                                        mix(run);
                                        for (std::int64_t& number : run.output<std::int64_t>(0))
                                          number ^= static_cast<std::int64_t>(generator());
                                        ++drawn;
                                      }}});
  const auto steps = [&](Trainer& trainer) {
    generator.seed(7);
    for (int step = 0; step < 2; ++step) trainer.step();
    return trainer.read_bytes("weight");
  };
  for (const char* planner : {"best", "capuchin"}) {
    SCOPED_TRACE(planner);
    const Program plain = compile(there_and_back(30, false), backend).value();
    EXPECT_GT(runs(planned(plain, machine, planner, plain.peak / 3).plan()), plain.graph.kernels.size())
        << "this test asks for recomputation";
    const Program program = compile(there_and_back(30, true), backend).value();
    drawn = 0;
    const VerifiedPlan plan = planned(program, machine, planner, program.peak / 3);
    EXPECT_EQ(drawn, 0U) << "measuring draws nothing";
    Trainer unlimited = Trainer::start(program, {}).value();
    Trainer limited = Trainer::start(program, plan, machine, {}).value();
    EXPECT_EQ(steps(limited), steps(unlimited));
    EXPECT_EQ(drawn, 2U * 2U * 30U);
  }
}

TEST(Foreign, SeesItsOperandsItsWorkspaceAndItsVariant) {
  Builder builder(10);
  const TensorId in = builder.tensor("in", TensorKind::input), out = builder.tensor("out"),
                 scratch = builder.tensor("scratch", TensorKind::workspace);
  Kernel& kernel = builder.kernel("look", {in}, {out});
  kernel.workspace = scratch;
  kernel.attributes = {{"factor", std::int64_t{3}}};
  kernel.variants = {{"thorough", Bytes{80}, {}}};
  builder.graph().results = {out};
  const auto look = [](const ForeignRun& run) {
    EXPECT_EQ(run.workspace.size(), 80U);
    EXPECT_EQ(run.variant, "thorough");
    const auto factor = std::get<std::int64_t>(*run.kernel.attributes.find("factor"));
    for (std::size_t i = 0; i < 10; ++i)
      run.output<std::int64_t>(0)[i] =
          factor * run.input<std::int64_t>(0)[i] + static_cast<std::int64_t>(run.step);
  };
  Trainer trainer =
      Trainer::start(compile(builder.graph(), foreign_backend({{"look", look}})).value(), {}).value();
  for (std::int64_t step = 0; step < 2; ++step) {
    const std::vector<std::int64_t> numbers(10, 5);
    std::memcpy(trainer.input_bytes("in").data(), numbers.data(), 80);
    trainer.step();
    const std::vector<std::int64_t> expected(10, 15 + step);
    const auto result = trainer.result_bytes(0);
    ASSERT_EQ(result.size(), 80U);
    EXPECT_EQ(std::memcmp(result.data(), expected.data(), 80), 0);
  }
}

TEST(Foreign, RefusesAnOperationWithoutACallback) {
  const auto program = compile(there_and_back(2, false), foreign_backend({{"other", mix}, {"some", mix}}));
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().message,
            "kernel mix1 does mix, for which no callback was given; there are: other, some");
}

TEST(Foreign, EndsTheStepWhereACallbackThrows) {
  int left = 3;
  const auto backend = foreign_backend({{"mix", [&](const ForeignRun& run) {
                                           if (--left == 0) throw std::runtime_error("no more");
                                           mix(run);
                                         }}});
  Trainer trainer = Trainer::start(compile(there_and_back(5, false), backend).value(), {}).value();
  EXPECT_THROW(trainer.step(), std::runtime_error);
  EXPECT_TRUE(trainer.failed());
  EXPECT_EQ(trainer.steps_done(), 0U);
}

TEST(Foreign, StartsWithInitialValuesOfEveryType) {
  Builder builder(4);
  const TensorId out = builder.tensor("out");
  for (const DataType type : {DataType::f32, DataType::f64, DataType::i32, DataType::i64, DataType::u8,
                              DataType::f16, DataType::bf16}) {
    const TensorId id = builder.tensor(std::string(to_string(type)), TensorKind::weight);
    Tensor& tensor = builder.graph()[id];
    tensor.type = type;
    tensor.bytes = 4 * size_of(type);
    tensor.initial = {Initial::Kind::constant, 3, 0};
  }
  builder.kernel("mix", {}, {out});
  Trainer trainer =
      Trainer::start(compile(builder.graph(), foreign_backend({{"mix", mix}})).value(), {}).value();
  const auto holds = [&](const char* name, auto three) {
    const std::vector<decltype(three)> expected(4, three);
    const auto bytes = trainer.read_bytes(name);
    return bytes.size() == 4 * sizeof(three) && std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0;
  };
  EXPECT_TRUE(holds("f32", 3.0F));
  EXPECT_TRUE(holds("f64", 3.0));
  EXPECT_TRUE(holds("i32", std::int32_t{3}));
  EXPECT_TRUE(holds("i64", std::int64_t{3}));
  EXPECT_TRUE(holds("u8", std::uint8_t{3}));
  EXPECT_TRUE(holds("f16", std::uint16_t{0x4200}));
  EXPECT_TRUE(holds("bf16", std::uint16_t{0x4040}));
}

}  // namespace
}  // namespace terrace
