// SPDX-License-Identifier: Apache-2.0
// Two engines on one computer: while one core computes backward through a layer, another computes the
// gradients of the layer behind it and updates its weights. The plan is made, proven and carried out; the
// weights have the same bits as on one core.
//
//   two_engines [STEPS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <terrace/net.hpp>
#include <terrace/planner.hpp>
#include <terrace/trainer.hpp>

namespace {

using namespace terrace::literals;
using terrace::Value;

terrace::Graph network() {
  terrace::Net net("eight layers");
  Value x = net.input("x", {64, 1024});
  for (int i = 0; i < 8; ++i) x = net.relu(net.linear("layer" + std::to_string(i), x, 1024));
  const Value label = net.input("label", {64}, terrace::DataType::i32);
  net.train(net.cross_entropy(net.linear("head", x, 10), label), {.kind = terrace::Optimizer::Kind::adam});
  return std::move(net).finish();
}

/// One memory, and two cores as an engine each.
terrace::Machine two_cores() {
  terrace::Machine machine;
  machine.name = "two cores";
  machine.tiers.resize(1);
  machine.tiers[0].name = "dram";
  machine.tiers[0].spec = "dram:1GiB";
  machine.tiers[0].capacity = 1_GiB;
  machine.tiers[0].read = machine.tiers[0].write = {1e10};
  machine.compute = {"core0", 1, 1e11};
  machine.further_engines = {{{"core1", 1, 1e11, {}}, {{0}}}};
  return machine;
}

struct Trained {
  std::vector<float> weights;
  double median = 0;  // seconds of a step
};

Trained train(const terrace::Program& program, const terrace::Machine& machine,
              const terrace::Profile& profile, const char* planner, int steps) {
  terrace::Plan plan =
      terrace::make_plan(planner, {program.graph, machine, profile, {machine.tiers[0].capacity}}).value();
  const double predicted = plan.prediction.step.count();
  const auto proven = verify(program.graph, machine, std::move(plan)).value();
  auto trainer = terrace::Trainer::start(program, proven, machine, {.seed = 1}).value();
  std::vector<double> seconds;
  for (int i = 0; i < steps; ++i) {
    const auto values = trainer.input("x");
    const auto labels = trainer.integer_input("label");
    for (std::size_t j = 0; j < values.size(); ++j) values[j] = static_cast<float>((j + i) % 101) / 100;
    for (std::size_t j = 0; j < labels.size(); ++j) labels[j] = static_cast<std::int32_t>(j % 10);
    trainer.step();
    seconds.push_back(trainer.timeline().step.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + steps / 2, seconds.end());
  const Trained trained{trainer.read("layer0.weight"), seconds[seconds.size() / 2]};
  std::printf("%-24s %.2f ms a step, %.2f expected, loss %.6f\n", planner, trained.median * 1e3,
              predicted * 1e3, trainer.result(0)[0]);
  return trained;
}

int run(int steps) {
  const auto program = terrace::compile(network(), 1).value();
  const terrace::Machine machine = two_cores();
  const auto profile = measure(program, machine, 256_MiB).value();
  const Trained alone = train(program, machine, profile, "all-fast", steps);
  const Trained beside = train(program, machine, profile, "all-fast+updates=core1", steps);
  const bool same = alone.weights == beside.weights;
  std::printf("%s bits, %.2f times as fast\n", same ? "same" : "OTHER", alone.median / beside.median);
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 20);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
