// Kernels with a token run once and in order, whatever a planner does with the token's bytes.
#include <gtest/gtest.h>

#include "terrace/verify.hpp"
#include "verify/hand_made.hpp"

namespace terrace::testing {
namespace {

/// draw: a, state = f(state)    add: b, state = g(a, state)    use: z = h(a, b). Everything fits in `fast`.
struct WithToken {
  enum Tensors : std::uint32_t { state, a, b, z };
  enum Kernels : std::uint32_t { draw, add, use };

  explicit WithToken(TensorKind kind) {
    graph.name = "with a token";
    graph.layers = {"all"};
    for (const char* name : {"state", "a", "b", "z"}) {
      Tensor& tensor = graph.tensors.emplace_back();
      tensor.name = name;
      tensor.shape = {16};
      tensor.type = DataType::u8;
      tensor.bytes = Bytes{16};
    }
    graph.tensors[state].kind = kind;
    graph.tensors[state].persistent = true;
    const auto kernel = [&](const char* name, std::vector<std::uint32_t> inputs,
                            std::vector<std::uint32_t> outputs) {
      Kernel& made = graph.kernels.emplace_back();
      made.name = name;
      for (const std::uint32_t i : inputs) made.inputs.push_back({{i}, {16}, Bytes{16}, {}});
      for (const std::uint32_t i : outputs) made.outputs.push_back({{i}, {16}, Bytes{16}, {}});
    };
    kernel("draw", {state}, {a, state});
    kernel("add", {a, state}, {b, state});
    kernel("use", {a, b}, {z});
    graph.results = {{z}};
    plan.budget = {Bytes{1024}, Bytes{1024}, Bytes{8192}};
    plan.start = {{{state}, {0}, 0}};
    plan.instructions = {Alloc{{a}, {0}, 64}, Alloc{{b}, {0}, 128}, Alloc{{z}, {0}, 192}};
  }

  static Run run(std::uint32_t kernel, std::size_t operands) {
    return {{kernel}, 0, std::vector<TierId>(operands, TierId{0})};
  }
  /// As a planner would that recomputes: the token's old value is kept in `slow` and brought back.
  void save_state(std::uint32_t ticket) {
    plan.instructions.push_back(Alloc{{state}, {1}, 0});
    plan.instructions.push_back(Copy{{{state}}, {0}, {1}, ticket});
    plan.instructions.push_back(Wait{ticket});
  }
  void bring_state_back(std::uint32_t ticket) {
    plan.instructions.push_back(Copy{{{state}}, {1}, {0}, ticket});
    plan.instructions.push_back(Wait{ticket});
  }
  void finish() {
    plan.instructions.push_back(Free{{a}, {0}});
    plan.instructions.push_back(Free{{b}, {0}});
  }
  std::string verdict() const {
    const auto found = violations(graph, machine, plan);
    return found.empty() ? "accepted" : found.front().reason;
  }

  Graph graph;
  Machine machine = HandMade::make_machine();
  Plan plan;
};

/// Draws, keeps the state as it was, and draws again from it.
WithToken recomputing(TensorKind kind) {
  WithToken it(kind);
  it.save_state(1);
  it.plan.instructions.push_back(it.run(WithToken::draw, 3));
  it.bring_state_back(2);
  it.plan.instructions.push_back(it.run(WithToken::draw, 3));
  it.plan.instructions.push_back(it.run(WithToken::add, 4));
  it.plan.instructions.push_back(it.run(WithToken::use, 3));
  it.plan.instructions.push_back(Free{{WithToken::state}, {1}});
  it.finish();
  return it;
}

TEST(VerifyTokens, AcceptsKernelsThatRunOnceInOrder) {
  WithToken it(TensorKind::token);
  it.plan.instructions.push_back(it.run(WithToken::draw, 3));
  it.plan.instructions.push_back(it.run(WithToken::add, 4));
  it.plan.instructions.push_back(it.run(WithToken::use, 3));
  it.finish();
  EXPECT_EQ(it.verdict(), "accepted");
}

TEST(VerifyTokens, AcceptsAKernelWithoutATokenTwice) {
  WithToken it(TensorKind::token);
  it.plan.instructions.push_back(it.run(WithToken::draw, 3));
  it.plan.instructions.push_back(it.run(WithToken::add, 4));
  it.plan.instructions.push_back(it.run(WithToken::use, 3));
  it.plan.instructions.push_back(it.run(WithToken::use, 3));
  it.finish();
  EXPECT_EQ(it.verdict(), "accepted");
}

TEST(VerifyTokens, RefusesAPlannerThatBringsATokenBackAndRunsItsKernelAgain) {
  EXPECT_EQ(recomputing(TensorKind::statistics).verdict(), "accepted");  // of ordinary state this is right
  EXPECT_EQ(recomputing(TensorKind::token).verdict(),
            "kernel draw runs again, and state stands for state that no copy of it brings back");
}

TEST(VerifyTokens, RefusesAKernelThatRunsBeforeItsTurn) {
  WithToken it(TensorKind::token);
  it.plan.instructions.push_back(it.run(WithToken::add, 4));
  it.plan.instructions.push_back(it.run(WithToken::draw, 3));
  it.plan.instructions.push_back(it.run(WithToken::use, 3));
  it.finish();
  EXPECT_EQ(it.verdict(),
            "kernel add runs before draw, and state stands for state that no copy of it brings back");
}

TEST(VerifyTokens, RefusesALateReaderOfAnOldCopy) {
  WithToken it(TensorKind::token);
  it.graph.kernels[WithToken::draw].outputs.pop_back();  // draw only looks at the state now
  it.save_state(1);
  it.graph.kernels[WithToken::add].inputs.erase(it.graph.kernels[WithToken::add].inputs.begin());
  it.plan.instructions.push_back(it.run(WithToken::add, 3));
  it.plan.instructions.push_back(terrace::Run{{WithToken::draw}, 0, {{1}, {0}}});
  it.plan.instructions.push_back(it.run(WithToken::use, 3));
  it.plan.instructions.push_back(Free{{WithToken::state}, {1}});
  it.finish();
  EXPECT_EQ(it.verdict(),
            "kernel add runs before draw, and state stands for state that no copy of it brings back");
  it.graph.tensors[WithToken::state].kind = TensorKind::statistics;
  EXPECT_EQ(it.verdict(), "accepted");
}

TEST(VerifyTokens, AreValidOnlyWherePersistent) {
  WithToken it(TensorKind::token);
  EXPECT_TRUE(validate(it.graph).ok());
  it.graph.tensors[WithToken::state].persistent = false;
  EXPECT_EQ(validate(it.graph).error().message, "state is a token and must be persistent");
}

}  // namespace
}  // namespace terrace::testing
