// SPDX-License-Identifier: Apache-2.0
// The networks and batches of 000 Table 3 and 002 Table 4.3, on one of the papers' machines: planned and
// simulated, never allocated.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "graph/passes.hpp"
#include "planners/baselines/memory_mode.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/models.hpp"
#include "terrace/networks.hpp"
#include "terrace/planner.hpp"
#include "terrace/program.hpp"
#include "terrace/verify.hpp"

namespace terrace::bench {

/// Trains a network to tell images of `side` times `side` apart.
template <class Logits>
Graph training_on_images(std::string name, std::int64_t batch, std::int64_t side, const Logits& logits) {
  Net net(std::move(name));
  const Value image = net.input("image", {batch, 3, side, side});
  const Value label = net.input("label", {batch}, DataType::i32);
  net.train(net.cross_entropy(logits(net, image), label), {.momentum = 0.9F, .weight_decay = 1e-4F});
  return std::move(net).finish();
}

/// Builds a network for images of 32x32, which the zoo has for 224x224.
template <class Logits>
Graph cifar_training(std::string name, std::int64_t batch, const Logits& logits) {
  return training_on_images(std::move(name), batch, 32, logits);
}

inline Graph cifar_bottlenecks(const std::string& name, std::int64_t batch,
                               std::vector<std::int64_t> layers) {
  return cifar_training(name, batch, [&](Net& net, Value image) {
    return networks::resnet(net, image, {.layers = layers, .classes = 10, .small_input = true});
  });
}

/// Builds the ResNet of He et al. for CIFAR, with 6 * blocks + 2 layers.
inline Graph cifar_resnet(std::int64_t batch, std::int64_t blocks) {
  return cifar_training("resnet" + std::to_string(6 * blocks + 2), batch, [&](Net& net, Value image) {
    return networks::resnet(net, image,
                            {.block = networks::ResNetOptions::Block::basic,
                             .layers = {blocks, blocks, blocks},
                             .width = 16,
                             .classes = 10,
                             .small_input = true});
  });
}

inline Graph cifar_mobilenet(std::int64_t batch, std::int64_t classes) {
  return cifar_training("mobilenet", batch, [&](Net& net, Value image) {
    return networks::mobilenet(net, image, {.classes = classes});
  });
}

inline Graph zoo_model(const std::string& name, std::int64_t batch,
                       std::optional<std::int64_t> sequence = {}) {
  return build_model(name, {.batch = batch, .sequence = sequence}).value();
}

/// The papers' figures of one training.
struct PaperCase {
  std::string name;
  std::int64_t batch;
  double peak_gb;  ///< the peak without Sentinel
  int steps;       ///< steps for profiling, and for finding and trying intervals
  Graph (*build)(std::int64_t batch);
};

/// 000 Tables 3 and 5. DCGAN is the zoo's, for 64x64 in colour instead of MNIST.
inline std::vector<PaperCase> cases_of_000() {
  return {{"resnet32", 128, 6.144, 8, [](std::int64_t batch) { return zoo_model("resnet32", batch); }},
          {"resnet152, 32x32", 32, 25.6, 5,
           [](std::int64_t batch) {
             return cifar_bottlenecks("resnet152", batch, {3, 8, 36, 3});
           }},
          {"lstm", 20, 2.048, 2, [](std::int64_t batch) { return zoo_model("lstm", batch); }},
          {"dcgan", 64, 3.072, 4, [](std::int64_t batch) { return zoo_model("dcgan", batch); }},
          {"mobilenet, 32x32", 64, 4.096, 3, [](std::int64_t batch) { return cifar_mobilenet(batch, 10); }}};
}

/// 002 does not give the length of CoLA's sentences, so this is an assumption.
constexpr std::int64_t kColaTokens = 128;

/// 002 Table 4.3, small batches.
inline std::vector<PaperCase> cases_of_002() {
  return {{"resnet32", 128, 14.10, 4, [](std::int64_t batch) { return zoo_model("resnet32", batch); }},
          {"bert-large, 128 tokens", 32, 35.39, 4,
           [](std::int64_t batch) { return zoo_model("bert-large", batch, kColaTokens); }},
          {"lstm", 20, 11.12, 1, [](std::int64_t batch) { return zoo_model("lstm", batch); }},
          {"dcgan", 128, 15.68, 4, [](std::int64_t batch) { return zoo_model("dcgan", batch); }},
          {"mobilenet, 32x32", 128, 14.15, 2, [](std::int64_t batch) { return cifar_mobilenet(batch, 10); }}};
}

/// 002 Table 4.3, large batches.
inline std::vector<PaperCase> large_cases_of_002() {
  return {
      {"resnet200, 32x32", 4096, 99.73, 8,
       [](std::int64_t batch) {
         return cifar_bottlenecks("resnet200", batch, {3, 24, 36, 3});
       }},
      {"bert-large, 128 tokens", 128, 133.59, 4,
       [](std::int64_t batch) { return zoo_model("bert-large", batch, kColaTokens); }},
      {"lstm", 4096, 29.97, 1, [](std::int64_t batch) { return zoo_model("lstm", batch); }},
      {"dcgan", 10000, 115.10, 8, [](std::int64_t batch) { return zoo_model("dcgan", batch); }},
      {"mobilenet, 32x32", 4096, 142.07, 8, [](std::int64_t batch) { return cifar_mobilenet(batch, 100); }}};
}

/// A training graph as it stands, or with the kernels, layouts and workspaces that it has on a processor.
enum class GraphOf { operations, kernels };

inline Graph graph_for(const Graph& graph, GraphOf what) {
  return what == GraphOf::kernels ? compile(graph, 1).value().graph : share_in_place(schedule(graph));
}

/// A training graph on one of the papers' machines.
class Simulated {
 public:
  Simulated(const Graph& graph, const std::string& machine, GraphOf what = GraphOf::operations)
      : graph_(graph_for(graph, what)),
        machine_(machine_preset(machine).value()),
        profile_(estimate(graph_, machine_)),
        peak_(Lifetimes(graph_).peak_bytes()),
        fast_only_(KernelClock(graph_, machine_, profile_).fast_step()) {}

  const Graph& graph() const { return graph_; }
  const Machine& machine() const { return machine_; }
  Bytes peak() const { return peak_; }
  Bytes least() const { return least_budget(graph_, machine_).bytes; }
  Seconds fast_only() const { return fast_only_; }
  double share_of(Bytes size) const {
    return static_cast<double>(size.count) / static_cast<double>(peak_.count);
  }

  /// Returns a request with `share` of the peak as fast memory, but no more than the machine has.
  PlanRequest request(double share) const {
    PlanRequest request{graph_, machine_, profile_, {}};
    for (const MachineTier& tier : machine_.tiers) request.budget.push_back(tier.capacity);
    const Bytes asked{static_cast<std::uint64_t>(share * static_cast<double>(peak_.count))};
    request.budget[0] = std::min(request.budget[0], round_up(asked, machine_.tiers[0].granularity));
    return request;
  }

  /// Returns a verified plan; one that the verifier rejects is an error.
  Result<Plan> plan(const std::string& planner, double share) const {
    auto made = make_plan(planner, request(share));
    if (made && !violations(graph_, machine_, *made).empty())
      throw std::runtime_error("the verifier rejects the plan of " + planner + " for " + graph_.name);
    return made;
  }

  /// Returns the share of the speed with everything in fast memory; nothing if there is no plan.
  std::optional<double> speed(const std::string& planner, double share) const {
    const auto made = plan(planner, share);
    if (!made) return {};
    return fast_only_ / made->prediction.step;
  }

  std::optional<double> memory_mode_speed(double share) const {
    const auto predicted = predict_memory_mode(request(share));
    if (!predicted) return {};
    return fast_only_ / predicted->step;
  }

  /// Returns the greatest share that the bound allows to plans without recomputation.
  double bound_speed(double share) const { return fast_only_ / step_bound(request(share)).moving; }

 private:
  Graph graph_;
  Machine machine_;
  Profile profile_;
  Bytes peak_;
  Seconds fast_only_;
};

}  // namespace terrace::bench
