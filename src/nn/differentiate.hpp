// Reverse-mode differentiation: appends the kernels that compute the gradients of some losses.
//
// Forward kernels are visited in reverse; each has one rule. A gradient is computed only for what a wanted
// weight has a part in. A tensor that several kernels read has its gradients added. What backward kernels
// read of the forward pass is all that stays alive for them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "terrace/net.hpp"

namespace terrace {

class Differentiation {
 public:
  /// `prefix` chooses the weights by name.
  Differentiation(Net& net, std::string_view prefix);
  Gradients run(const std::vector<Value>& losses);

 private:
  void visit(const Kernel& forward);
  bool wants(const Operand& operand) const { return wanted_[operand.tensor.index]; }
  bool has_gradient(const Operand& operand) const;
  /// The gradient that reached an output, in that output's shape. pre: has_gradient
  Value gradient_of(const Operand& operand) const;
  /// Adds one more part to the gradient of an input; parts of unwanted inputs are dropped.
  void contribute(const Operand& input, Value part);

  /// Starts a backward kernel with these inputs.
  Kernel start(Operation operation, const Attributes& attributes, std::vector<Operand> inputs) const;
  /// Appends an output that is the gradient of `input`.
  Value gradient_output(Kernel& kernel, const Operand& input);
  void finish(Kernel kernel);

  void loss(const Kernel& forward, Operation backward);
  /// dx from (dy, what forward left), in place over dy.
  void pointwise(const Kernel& forward, Operation backward, const std::vector<Operand>& left);
  void window(const Kernel& forward, Operation data, Operation weights);
  void matmul(const Kernel& forward);
  void pooling(const Kernel& forward);
  void normalisation(const Kernel& forward, Operation backward);
  void addition(const Kernel& forward);
  void product(const Kernel& forward);
  void concat(const Kernel& forward);
  void heads(const Kernel& forward);
  void embedding(const Kernel& forward);
  void lstm(const Kernel& forward);

  Net& net_;
  std::vector<bool> wanted_;
  struct Found {
    Value value;
    std::uint32_t layer = 0;
  };
  std::vector<std::optional<Found>> gradients_;
  std::vector<TensorId> losses_;
};

}  // namespace terrace
