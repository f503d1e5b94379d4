// Runs a net in the engine and in PyTorch, on the same data, and compares all that comes out: losses,
// gradients of all weights, running statistics and every value the net names as a result.
//
// A random net whose data comes close to where a gradient jumps (relu at zero, two largest in a window) is
// run again with other data: there two correct programs may differ.
#pragma once

#include <functional>

#include "agreement/comparison.hpp"
#include "agreement/translation.hpp"
#include "base/random.hpp"
#include "support/torch.hpp"
#include "terrace/net.hpp"
#include "terrace/trainer.hpp"

namespace terrace::agreement {

/// Started on first use, because that takes seconds, and shared by the tests of a program.
inline TorchServer& torch() {
  static TorchServer server({});
  return server;
}

inline float uniform(SplitMix& random) {
  return static_cast<float>(static_cast<double>(random.next() >> 11) * 0x1p-52 - 1);
}

/// One that the kernel which reads this input can take. Labels that do not count are among them.
inline std::int32_t draw_integer(const Graph& graph, TensorId input, std::int64_t place, SplitMix& random) {
  for (const Kernel& kernel : graph.kernels) {
    if (kernel.phase != Phase::forward || kernel.inputs.size() < 2 || kernel.inputs[1].tensor != input)
      continue;
    const bool is_label = operation_of(kernel) == Operation::cross_entropy;
    if (is_label && place > 0 && random.below(4) == 0) return -100;
    return static_cast<std::int32_t>(random.below(
        static_cast<std::uint64_t>(is_label ? kernel.inputs[0].shape[1] : kernel.inputs[0].shape[0])));
  }
  return 0;
}

/// Random values for every input of a graph.
inline HostTensors draw_inputs(const Graph& graph, std::uint64_t seed) {
  SplitMix random(seed);
  HostTensors drawn;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (tensor.kind != TensorKind::input || tensor.persistent) continue;
    HostTensor& host = drawn[tensor.name];
    host.shape = tensor.shape;
    for (std::int64_t n = 0; n < tensor.shape.elements(); ++n) {
      if (tensor.type == DataType::f32) {
        host.floats.push_back(uniform(random));
      } else {
        host.integers.push_back(draw_integer(graph, {i}, n, random));
      }
    }
  }
  return drawn;
}

inline void give(Trainer& trainer, const HostTensors& inputs) {
  for (const auto& [name, tensor] : inputs) {
    if (tensor.is_integer()) {
      std::copy(tensor.integers.begin(), tensor.integers.end(), trainer.integer_input(name).begin());
    } else {
      std::copy(tensor.floats.begin(), tensor.floats.end(), trainer.input(name).begin());
    }
  }
}

inline bool is_trained_state(const Tensor& tensor) {
  return tensor.persistent && (tensor.kind == TensorKind::weight || tensor.kind == TensorKind::statistics);
}

/// Weights and running statistics, and the constants a net brings along.
inline HostTensors read_state(const Graph& graph, const Trainer& trainer) {
  HostTensors state;
  for (const Tensor& tensor : graph.tensors) {
    if (is_trained_state(tensor)) state[tensor.name] = {tensor.shape, trainer.read(tensor.name), {}};
    if (tensor.initial.kind != Initial::Kind::positions) continue;
    HostTensor& positions = state[tensor.name];
    positions.shape = tensor.shape;
    for (std::int64_t i = 0; i < tensor.shape.elements(); ++i) {
      positions.integers.push_back(
          static_cast<std::int32_t>(i % static_cast<std::int64_t>(tensor.initial.a)));
    }
  }
  return state;
}

/// Running statistics as they are after some training: at their start a normalisation would change nothing.
inline void age_statistics(const Graph& graph, Trainer& trainer, std::uint64_t seed) {
  SplitMix random(seed);
  for (const Tensor& tensor : graph.tensors) {
    if (!tensor.persistent || tensor.kind != TensorKind::statistics) continue;
    std::vector<float> values = trainer.read(tensor.name);
    for (float& value : values) value += 0.5F * uniform(random);
    trainer.write(tensor.name, values);
  }
}

/// A net with everything that is compared made a result of it.
struct Subject {
  Graph graph;
  std::vector<std::string> results;  ///< names in PyTorch, in the order of graph.results
};

/// Makes the net and returns its outputs; losses among them are taken as they are.
using Build = std::function<std::vector<Value>(Net&)>;

inline bool is_loss(const Graph& graph, Value value) {
  return std::any_of(graph.kernels.begin(), graph.kernels.end(), [&](const Kernel& kernel) {
    const bool ends = operation_of(kernel) == Operation::cross_entropy ||
                      operation_of(kernel) == Operation::binary_cross_entropy;
    return ends && kernel.outputs[0].tensor == value.tensor;
  });
}

/// A loss whose slope is different at every element of y.
inline Value judged(Net& net, Value y, std::size_t number) {
  const Value slope = net.input("slope " + std::to_string(number), y.shape);
  return net.binary_cross_entropy(net.mul(y, slope), 0.25F, static_cast<float>(y.shape.elements()));
}

inline Subject make_subject(const Build& build, Net::Mode mode) {
  Net net("subject", mode);
  Subject subject;
  std::vector<Value> losses, others;
  for (const Value& output : build(net)) {
    const bool ready = is_loss(net.graph(), output);
    if (!ready) others.push_back(output);
    if (mode == Net::Mode::training) losses.push_back(ready ? output : judged(net, output, losses.size()));
  }
  const auto name = [&](TensorId id) { return net.graph()[id].name; };
  if (mode == Net::Mode::training) {
    const Gradients gradients = net.backward(losses);
    for (const Value& loss : losses) subject.results.push_back(name(loss.tensor));
    for (const WeightGradient& gradient : gradients) {
      net.result(gradient.gradient);
      subject.results.push_back("gradient of " + name(gradient.weight));
    }
  }
  for (const Value& output : others) {
    net.result(output);
    subject.results.push_back(name(output.tensor));
  }
  subject.graph = std::move(net).finish();
  return subject;
}

/// The forward kernels and the shapes they see, for messages.
inline std::string describe(const Graph& graph) {
  std::string text;
  for (const Kernel& kernel : graph.kernels) {
    if (kernel.phase != Phase::forward) continue;
    text +=
        "\n  " + kernel.operation + " " + std::visit(AttributesInTorch{kernel}, attributes_of(kernel)).dump();
    for (const Operand& input : kernel.inputs) text += " " + to_string(input.shape);
  }
  return text;
}

/// What each dropout multiplied by, read off its result. pre: `build` returned it, and nothing in it was zero
inline void add_masks(const Graph& graph, const std::map<std::string, std::vector<float>>& results,
                      HostTensors& tensors) {
  for (const Kernel& kernel : graph.kernels) {
    if (operation_of(kernel) != Operation::dropout) continue;
    const auto& kept = results.at(graph[kernel.outputs[0].tensor].name);
    HostTensor& mask = tensors[mask_name(kernel)];
    mask.shape = kernel.outputs[0].shape;
    const float scale = 1 / (1 - attributes_as<DropoutAttributes>(kernel).probability);
    for (const float value : kept) mask.floats.push_back(value != 0 ? scale : 0);
  }
}

class Meeting {
 public:
  explicit Meeting(Subject subject) : subject_(std::move(subject)) {}

  /// Returns false where the data came too close to a jump to compare anything.
  bool compare(std::uint64_t seed, double tolerance) {
    Trainer trainer = Trainer::start(compile(subject_.graph).value(), {.seed = seed}).value();
    age_statistics(subject_.graph, trainer, seed);
    tensors_ = draw_inputs(subject_.graph, seed);
    give(trainer, tensors_);
    tensors_.merge(read_state(subject_.graph, trainer));
    trainer.step();
    for (std::size_t i = 0; i < subject_.results.size(); ++i) ours_[subject_.results[i]] = trainer.result(i);
    for (auto& [name, state] : read_state(subject_.graph, trainer)) {
      if (subject_.graph[find_tensor(subject_.graph, name)].kind == TensorKind::statistics)
        ours_[name] = state.floats;
    }
    add_masks(subject_.graph, ours_, tensors_);
    if (ask() < kMargin) return false;
    expect_equal(tolerance);
    return true;
  }

 private:
  /// Beyond rounding in a chain of a few operations.
  static constexpr double kMargin = 2e-6;

  double ask() const {
    Json results = Json::array(), learned = Json::array();
    for (const auto& [name, values] : ours_) {
      const bool is_gradient = name.starts_with("gradient of ");
      (is_gradient ? learned : results).push_back(is_gradient ? name.substr(12) : name);
    }
    const bool trains = !learned.empty();
    write_tensors(torch().file("tensors"), tensors_);
    return torch()
        .ask({{"graph", steps_in_torch(subject_.graph)},
              {"losses", trains ? losses_in_torch(subject_.graph) : Json::object()},
              {"learned", learned},
              {"results", results},
              {"tensors", torch().file("tensors")},
              {"result", torch().file("result")}})["margin"]
        .get<double>();
  }

  void expect_equal(double tolerance) const {
    const HostTensors theirs = read_tensors(torch().file("result"));
    for (const auto& [name, values] : ours_)
      EXPECT_TRUE(agree(values, theirs.at(name).floats, tolerance)) << name;
  }

  Subject subject_;
  HostTensors tensors_;
  std::map<std::string, std::vector<float>> ours_;
};

inline void expect_agreement(const Build& build, std::uint64_t seed, double tolerance = kTolerance,
                             Net::Mode mode = Net::Mode::training) {
  const Subject subject = make_subject(build, mode);
  SCOPED_TRACE("seed " + std::to_string(seed) + describe(subject.graph));
  for (std::uint64_t attempt = 0; attempt < 20; ++attempt) {
    if (Meeting(subject).compare(seed + 1000 * attempt, tolerance)) return;
  }
  ADD_FAILURE() << "20 draws of data all lie where a gradient jumps: take a smaller net";
}

}  // namespace terrace::agreement
