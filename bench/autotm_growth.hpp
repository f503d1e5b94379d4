// Builds placement problems of any size: chains, chains with skip connections as in DenseNet, and random
// graphs.
#pragma once

#include <cmath>

#include "autotm_networks.hpp"
#include "base/random.hpp"
#include "support/random_graph.hpp"

namespace terrace::bench {

/// The training graph of a chain of layers, each of which reads the outputs of a number of layers before it:
/// forward, then backward, where every layer's weight is updated as soon as its gradient is computed.
class ChainGraph {
 public:
  ChainGraph(std::uint32_t layers, std::uint32_t reach) : layers_(layers), reach_(reach), random_(layers) {}

  Graph make() {
    graph_.name = "chain";
    graph_.layers = {"all"};
    std::vector<TensorId> made{tensor(TensorKind::input, size())}, weights;
    for (std::uint32_t i = 0; i < layers_; ++i) {
      weights.push_back(tensor(TensorKind::weight, Bytes{1 + random_.below(1 << 22)}));
      std::vector<TensorId> inputs = read_by(made, i);
      inputs.push_back(weights.back());
      made.push_back(tensor(TensorKind::activation, size()));
      add(inputs, {made.back()}, Phase::forward);
    }
    graph_.results = {made.back()};
    std::vector<TensorId> gradients(made.size());
    gradients.back() = made.back();
    for (std::uint32_t i = layers_; i-- > 0;) add_backward(made, gradients, weights[i], i);
    return std::move(graph_);
  }

 private:
  /// Draws a size from 16 MiB to 272 MiB.
  Bytes size() { return Bytes{(std::uint64_t{1} << 24) + random_.below(std::uint64_t{1} << 28)}; }

  std::vector<TensorId> read_by(const std::vector<TensorId>& made, std::uint32_t layer) const {
    const std::uint32_t first = layer + 1 > reach_ ? layer + 1 - reach_ : 0;
    return {made.begin() + first, made.begin() + layer + 1};
  }

  void add_backward(const std::vector<TensorId>& made, std::vector<TensorId>& gradients, TensorId weight,
                    std::uint32_t layer) {
    std::vector<TensorId> inputs = read_by(made, layer), outputs;
    const auto first = static_cast<std::uint32_t>(layer + 1 - inputs.size());
    inputs.push_back(weight);
    inputs.push_back(gradients[layer + 1]);
    for (std::uint32_t i = std::max(1U, first); i <= layer; ++i) {
      if (gradients[i]) inputs.push_back(gradients[i]);  // the kernel accumulates into it
      if (!gradients[i]) gradients[i] = tensor(TensorKind::gradient, graph_[made[i]].bytes);
      outputs.push_back(gradients[i]);
    }
    outputs.push_back(weight);
    add(inputs, outputs, Phase::backward);
  }

  TensorId tensor(TensorKind kind, Bytes bytes) {
    const TensorId id{static_cast<std::uint32_t>(graph_.tensors.size())};
    Tensor made;
    made.name = "t" + std::to_string(id.index);
    made.shape = {static_cast<std::int64_t>(bytes.count)};
    made.type = DataType::u8;
    made.kind = kind;
    made.persistent = kind == TensorKind::weight;
    made.bytes = bytes;
    graph_.tensors.push_back(made);
    return id;
  }

  void add(const std::vector<TensorId>& inputs, const std::vector<TensorId>& outputs, Phase phase) {
    Kernel kernel;
    kernel.name = "k" + std::to_string(graph_.kernels.size());
    kernel.operation = "layer";
    kernel.phase = phase;
    const auto whole = [&](TensorId id) { return Operand{id, graph_[id].shape, graph_[id].bytes, {}}; };
    for (const TensorId id : inputs) kernel.inputs.push_back(whole(id));
    for (const TensorId id : outputs) kernel.outputs.push_back(whole(id));
    // The work ranges from memory-bound to compute-bound.
    kernel.flops =
        static_cast<double>(random_.below(60)) * static_cast<double>(graph_[outputs[0]].bytes.count);
    graph_.kernels.push_back(kernel);
  }

  std::uint32_t layers_, reach_;
  SplitMix random_;
  Graph graph_;
};

inline Graph random_kernels(std::uint32_t kernels) {
  using namespace literals;
  RandomGraphOptions options;
  options.kernels = kernels;
  options.least = 1_MiB;
  options.most = 256_MiB;
  options.result_share = 0;
  return random_graph(options, kernels);
}

struct Family {
  const char* name;
  Graph (*make)(std::uint32_t kernels);
};
constexpr Family kFamilies[] = {
    {"chain", [](std::uint32_t kernels) { return ChainGraph(kernels / 2, 1).make(); }},
    {"dense", [](std::uint32_t kernels) { return ChainGraph(kernels / 2, 4).make(); }},
    {"random", random_kernels}};

/// Returns the exponent with which seconds grow with kernels, between the smallest and the largest graph that
/// reached 1%.
inline json exponent_of(const json& rows, const std::string& family) {
  const json *first = nullptr, *last = nullptr;
  for (const json& row : rows) {
    if (row["family"] != family || !row["ours"]["reached"].get<bool>()) continue;
    if (first == nullptr) first = &row;
    last = &row;
  }
  if (first == last) return nullptr;
  const auto ratio = [&](auto value) { return std::log(value(*last) / value(*first)); };
  return ratio([](const json& row) { return row["ours"]["seconds"].get<double>(); }) /
         ratio([](const json& row) { return row["kernels"].get<double>(); });
}

inline json growth(const AutotmRequest& asked) {
  print_head("Growth, synchronous 4:1",
             "| graph | kernels | making the instance, s | s to 1% | iterations/s |");
  json rows = json::array(), exponents = json::object();
  for (const Family& family : kFamilies) {
    if (!asked.network.empty() && asked.network != family.name) continue;
    for (const std::uint32_t kernels : {100U, 1000U, 10'000U, 100'000U}) {
      if (asked.quick && kernels > 1000) break;
      const AutotmProblem problem(family.make(kernels), autotm_machine(1));
      const PlanRequest request = problem.request(4);
      std::optional<autotm::Instance> instance;
      const double making = seconds_of([&] {
        instance = make_instance(request, autotm::Formulation::synchronous, request.budget[0]).value();
      });
      const json ours = solve_ours(*instance, kUsualGap, Seconds{20}, 1);
      rows.push_back({{"family", family.name},
                      {"kernels", problem.graph().kernels.size()},
                      {"instance_seconds", making},
                      {"ours", ours}});
      print_line(fmt::format("| {} | {} | {:.2f} | {} | {:.0f} |", family.name,
                             problem.graph().kernels.size(), making, text_of(ours),
                             ours["iterations_per_second"].get<double>()));
    }
    exponents[family.name] = exponent_of(rows, family.name);
  }
  print_line("\nSeconds grow as kernels to the power of " + exponents.dump());
  return {{"rows", rows}, {"exponents", exponents}};
}

}  // namespace terrace::bench
