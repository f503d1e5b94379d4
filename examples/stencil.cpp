// An out-of-core stencil, which is no neural network: a grid of numbers on a torus is smoothed sweep after
// sweep in a fifth of its memory, the rest of it in a file, with the same bits as in unlimited memory.
//
//   stencil [FOLDER]
#include <cstdio>
#include <string>
#include <terrace/foreign.hpp>
#include <terrace/planner.hpp>
#include <terrace/trainer.hpp>

namespace {

using namespace terrace;
constexpr std::uint32_t kBlocks = 40, kRows = 64, kColumns = 1024;

/// Every point becomes the mean of itself and its neighbours above, below and to the left; the blocks above
/// and below lend their border rows.
void smooth(const ForeignRun& run) {
  const auto above = run.input<double>(0), here = run.input<double>(1), below = run.input<double>(2);
  const auto to = run.output<double>(0);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const double up = i >= kColumns ? here[i - kColumns] : above[i + (kRows - 1) * kColumns];
    const double down = i + kColumns < to.size() ? here[i + kColumns] : below[i % kColumns];
    to[i] = (up + down + here[i] + here[i % kColumns > 0 ? i - 1 : i + kColumns - 1]) / 4;
  }
}

/// Two sweeps: from the blocks of the grid to others, and back.
Graph two_sweeps() {
  Graph graph{"stencil", std::vector<Tensor>(2 * kBlocks), {}, {"there", "back"}, {}};
  for (std::uint32_t i = 0; i < 2 * kBlocks; ++i) {
    Tensor& block = graph.tensors[i];
    block.name = "block" + std::to_string(i);
    block.shape = {kRows, kColumns}, block.type = DataType::f64, block.bytes = Bytes{kRows * kColumns * 8};
    block.persistent = i < kBlocks, block.initial = {Initial::Kind::uniform, 0, 1};
  }
  const auto block = [&](std::uint32_t layer, std::uint32_t number) {
    const TensorId id{layer * kBlocks + number % kBlocks};
    return Operand{id, graph[id].shape, graph[id].bytes, {}};
  };
  for (std::uint32_t i = 0; i < 2 * kBlocks; ++i) {
    const std::uint32_t layer = i / kBlocks;
    Kernel& kernel = graph.kernels.emplace_back();
    kernel.name = "smooth" + std::to_string(i), kernel.operation = "smooth", kernel.layer = layer;
    kernel.inputs = {block(layer, i + kBlocks - 1), block(layer, i), block(layer, i + 1)};
    kernel.outputs = {block(1 - layer, i)};
  }
  return graph;
}

}  // namespace

int main(int argc, char** argv) try {
  Machine machine = machine_preset("v100-pcie3").value();  // for the figures, as they might be
  machine.tiers[0].spec = "dram:1GiB", machine.tiers[1].granularity = Bytes{4096};
  machine.tiers[1].spec = std::string("file:") + (argc > 1 ? argv[1] : ".") + "/stencil.spill:1GiB,buffered";
  const Program program = compile(two_sweeps(), foreign_backend({{"smooth", smooth}})).value();
  const Profile profile = measure(program, machine, Bytes{64 << 20}).value();
  const PlanRequest request{program.graph, machine, profile, {program.peak / 5, Bytes{1 << 30}}};
  const VerifiedPlan plan = verify(program.graph, machine, make_plan("best", request).value()).value();
  Trainer unlimited = Trainer::start(program, {}).value();
  Trainer limited = Trainer::start(program, plan, machine, {}).value();
  for (int step = 0; step < 3; ++step) unlimited.step(), limited.step();
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    const std::string& block = program.graph.tensors[i].name;
    if (limited.read_bytes(block) != unlimited.read_bytes(block)) return 1;
  }
  const Bytes used = limited.timeline().peak[0];
  std::printf("the same bits in %s of %s\n", readable(used).c_str(), readable(program.peak).c_str());
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
