// SPDX-License-Identifier: Apache-2.0
// Builds training graphs, in the words of PyTorch.
//
//   Net net("mlp");
//   Value x = net.input("image", {64, 784});
//   x = net.relu(net.linear("fc1", x, 128));
//   Value loss = net.cross_entropy(net.linear("fc2", x, 10), net.input("label", {64}, DataType::i32));
//   net.train(loss, {.kind = Optimizer::Kind::sgd, .momentum = 0.9F});
//   Graph graph = std::move(net).finish();
//
// Images are [batch, channels, height, width], sequences [batch, sequence, features] or flattened
// [rows, features]. Weights have PyTorch's names and shapes. A name given twice in the same scope is the same
// weight. A shape that does not fit throws GraphError, whose text names the layer. Not thread-safe.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "terrace/graph.hpp"
#include "terrace/operation.hpp"

namespace terrace {

class GraphError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A tensor seen in some shape.
struct Value {
  TensorId tensor;
  Shape shape;
};

struct Optimizer {
  enum class Kind : std::uint8_t { sgd, adam };
  Kind kind = Kind::sgd;
  float momentum = 0.9F;                                ///< sgd; 0 needs no state
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;  ///< adam
  float weight_decay = 0;
  bool decoupled_decay = false;  ///< adam as in AdamW
};

struct WeightGradient {
  TensorId weight;
  Value gradient;
  std::uint32_t layer = 0;  ///< whose backward pass made it
};
/// The gradients of weights, in the order in which the weights were made.
using Gradients = std::vector<WeightGradient>;

class Net {
 public:
  enum class Mode : std::uint8_t { training, inference };
  using Pair = Window::Pair;

  explicit Net(std::string name, Mode mode = Mode::training);

  Value input(std::string_view name, const Shape& shape, DataType type = DataType::f32);
  /// i32 constants: element i is i modulo `period`.
  Value positions(std::string_view name, const Shape& shape, std::int64_t period);
  Value parameter(std::string_view name, const Shape& shape, Initial initial);

  /// Names within are prefixed by `name.` as long as the returned value lives.
  class Scope;
  [[nodiscard]] Scope scope(std::string_view name);

  struct Conv {
    Pair kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
    std::int64_t groups = 1;
    bool bias = true;
    std::optional<Initial> initial = {};  ///< of the weight; without it as in PyTorch
  };
  Value conv2d(std::string_view name, Value x, std::int64_t channels, const Conv& options);
  Value conv_transpose2d(std::string_view name, Value x, std::int64_t channels, const Conv& options);
  struct Linear {
    bool bias = true;
    std::optional<Initial> initial = {};  ///< of the weight; without it as in PyTorch
  };
  Value linear(std::string_view name, Value x, std::int64_t features, const Linear& options);
  Value linear(std::string_view name, Value x, std::int64_t features) {
    return linear(name, x, features, {});
  }
  /// `weight` is [features, x's last extent]: for weights that are shared with an embedding.
  Value linear_with(Value x, Value weight, std::optional<Value> bias = {});
  Value matmul(Value a, Value b, const MatmulAttributes& options = {});

  struct Pool {
    Pair kernel{2, 2}, stride{0, 0}, padding{0, 0};  ///< stride 0: as the kernel
    bool include_padding = true;
  };
  Value max_pool2d(Value x, const Pool& options);
  Value avg_pool2d(Value x, const Pool& options);
  /// The mean over height and width: [batch, channels, 1, 1].
  Value global_avg_pool2d(Value x);

  Value batch_norm(std::string_view name, Value x, const NormAttributes& options = {});
  Value layer_norm(std::string_view name, Value x, float epsilon = 1e-5F);
  Value softmax(Value x, const SoftmaxAttributes& options = {});
  Value relu(Value x);
  Value leaky_relu(Value x, float slope);
  Value gelu(Value x, const GeluAttributes& options = {});
  Value tanh(Value x);
  Value sigmoid(Value x);
  Value add(Value a, Value b, const AddAttributes& options = {});
  Value mul(Value a, Value b);
  Value concat(const std::vector<Value>& parts, std::int64_t axis = 1);
  std::vector<Value> split_heads(Value x, const HeadsAttributes& options);
  Value merge_heads(Value x, std::int64_t heads);
  /// Rows of a [rows, features] table named `name.weight`: shape of indices + [features].
  Value embedding(std::string_view name, Value indices, std::int64_t rows, std::int64_t features,
                  Initial initial = {Initial::Kind::normal, 0, 1});
  Value dropout(Value x, float probability);
  /// x is [time, batch, features], the state starts at zero; [time, batch, hidden].
  Value lstm(std::string_view name, Value x, std::int64_t hidden);
  /// The mean over rows of logits [rows, classes] for labels [rows]; label -100 does not count.
  Value cross_entropy(Value logits, Value labels, float weight = 1);
  /// The mean over all elements, which all should be `target`.
  Value binary_cross_entropy(Value logits, float target, float weight = 1);

  /// Appends any operation of the table whose first output has this shape, so that a new operation needs no
  /// function here. Further outputs, and weights of its own, are for functions of this class.
  Value apply(Operation operation, const std::vector<Value>& inputs, const Shape& shape,
              const OperationAttributes& attributes = {});

  Value reshape(Value x, const Shape& shape) const;
  /// [first extent, all the others]
  Value flatten(Value x) const;

  /// Gradients of the weighted sum of `losses` with respect to the weights whose names start with `prefix`.
  /// The losses become results of the graph.
  Gradients backward(const std::vector<Value>& losses, std::string_view prefix = {});
  /// The sum of two, for batches that are worked on in parts: forward and backward for one part after the
  /// other. pre: of the same weights
  Gradients accumulate(const Gradients& sum, const Gradients& more);
  void update(const Gradients& gradients, const Optimizer& optimizer);
  void train(Value loss, const Optimizer& optimizer) { update(backward({loss}), optimizer); }
  void result(Value x);

  Mode mode() const { return mode_; }
  const Graph& graph() const { return graph_; }
  Graph finish() &&;

 private:
  friend class Differentiation;

  std::string full_name(std::string_view name) const;
  /// A layer starts at every operation that has a weight matrix; what follows belongs to it. It has the name
  /// of the scope, or `unscoped` where there is none.
  void begin_layer(std::string_view unscoped);
  [[noreturn]] void fail(const std::string& why) const;
  void require(bool holds, const std::string& why) const;

  TensorId new_tensor(std::string name, const Shape& shape, TensorKind kind, DataType type = DataType::f32);
  /// Fills in layer, phase and work, and appends the kernel. pre: it has a name
  void emit(Kernel kernel);
  /// Appends an operation whose output has the shape of its input, and which may work in place.
  Value unary(Operation operation, Value x, const OperationAttributes& attributes = {});
  Value binary(Operation operation, Value a, Value b, const OperationAttributes& attributes);
  std::string kernel_name(Operation operation);
  Value pool(Operation operation, Value x, const Pool& options);
  Value convolution(Operation operation, std::string_view name, Value x, std::int64_t channels,
                    const Conv& options);
  Value make(Kernel kernel, const Shape& shape);
  TensorId persistent(std::string_view name, const Shape& shape, TensorKind kind, Initial initial);
  Operand operand(Value value) const;
  std::string unique_name(std::string stem);

  Graph graph_;
  Mode mode_;
  std::string scope_;
  Phase phase_ = Phase::forward;
  std::uint32_t layer_ = 0;
  std::uint32_t dropouts_ = 0;
  std::unordered_map<std::string, TensorId> persistent_;  ///< by full name
  std::unordered_map<std::string, std::uint32_t> names_;  ///< how often each stem was used
};

class Net::Scope {
 public:
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { net_.scope_ = std::move(outer_); }

 private:
  friend class Net;
  Scope(Net& net, std::string outer) : net_(net), outer_(std::move(outer)) {}
  Net& net_;
  std::string outer_;
};

}  // namespace terrace
