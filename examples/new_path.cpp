// A network takes a path that was unknown when training started: it skips its middle block. The path is
// profiled in the memory that the run has, planned, and trained from the same weights.
//
//   new_path [FOLDER]
#include <cstdio>
#include <filesystem>
#include <string>
#include <terrace/net.hpp>
#include <terrace/planner.hpp>
#include <terrace/trainer.hpp>

namespace {

using namespace terrace::literals;
using terrace::Value;

enum class Path { whole, short_cut };

terrace::Graph network(Path path) {
  terrace::Net net("network with a short cut");
  Value x = net.relu(net.linear("stem", net.input("x", {256, 64}), 512));
  if (path == Path::whole) x = net.add(x, net.linear("out", net.gelu(net.linear("in", x, 2048)), 512));
  const Value label = net.input("label", {256}, terrace::DataType::i32);
  net.train(net.cross_entropy(net.linear("head", x, 10), label), {.kind = terrace::Optimizer::Kind::adam});
  return std::move(net).finish();
}

/// Describes this computer's memory and a file, with plausible figures.
terrace::Machine memory_and_file(const std::string& file) {
  terrace::Machine machine;
  machine.name = "memory and a file";
  machine.tiers.resize(2);
  machine.tiers[0].name = "dram", machine.tiers[1].name = "file";
  machine.tiers[0].spec = "dram:1GiB", machine.tiers[1].spec = "file:" + file + ":1GiB,buffered";
  for (terrace::MachineTier& tier : machine.tiers) {
    tier.capacity = 1_GiB;
    tier.granularity = 4_KiB;
    tier.read = tier.write = {1e10};
  }
  machine.tiers[1].addressable = false;
  machine.links = {{{0}, {1}, {{1_MiB, {1e9}}}}, {{1}, {0}, {{1_MiB, {1e9}}}}};
  machine.compute = {"this", 1, 1e11};
  return machine;
}

terrace::VerifiedPlan planned(const terrace::Graph& graph, const terrace::Machine& machine,
                              const terrace::Profile& profile, const std::vector<terrace::Bytes>& budget) {
  terrace::Plan plan = terrace::make_plan("prefetch", {graph, machine, profile, budget}).value();
  plan.budget = budget;
  return verify(graph, machine, std::move(plan)).value();
}

float step(terrace::Trainer& trainer) {
  const auto values = trainer.input("x");
  const auto labels = trainer.integer_input("label");
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 101) / 100;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  trainer.step();
  return trainer.result(0)[0];
}

int run(const std::filesystem::path& folder) {
  const terrace::Machine machine = memory_and_file((folder / "terrace.spill").string());
  const auto whole = terrace::compile(network(Path::whole)).value();
  const auto plan =
      planned(whole.graph, machine, estimate(whole.graph, machine), {whole.peak * 7 / 10, 256_MiB});
  auto trainer = terrace::Trainer::start(whole, plan, machine, {.seed = 1}).value();
  std::printf("whole network, loss %.6f, in %s\n", step(trainer), readable(trainer.budget()[0]).c_str());

  // The new path keeps the state of the block it skips, which its plan has room for.
  const auto graph = with_state_of(network(Path::short_cut), network(Path::whole));
  const auto path = terrace::compile(graph).value();
  const terrace::Profile profile = trainer.measure(path, machine, folder).value();
  const auto its_plan = planned(path.graph, machine, profile, trainer.budget());
  const std::size_t number = trainer.add_graph(path, its_plan, machine).value();
  const auto skipped = trainer.read("in.weight");
  std::printf("a new path, met after step %llu\n", static_cast<unsigned long long>(trainer.steps_done()));
  trainer.use_graph(number);
  std::printf("short cut,     loss %.6f\n", step(trainer));
  if (trainer.read("in.weight") != skipped) return 1;
  trainer.use_graph(0);
  std::printf("whole network, loss %.6f\n", step(trainer));
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc > 1 ? argv[1] : ".");
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
