// Gradients and updates of Net.
#include "nn/differentiate.hpp"
#include "terrace/net.hpp"

namespace terrace {
namespace {

constexpr Initial kZeros{Initial::Kind::constant, 0, 0};

std::vector<const char*> states_of(const Optimizer& optimizer) {
  if (optimizer.kind == Optimizer::Kind::adam) return {"first moment of ", "second moment of "};
  if (optimizer.momentum != 0) return {"momentum of "};
  return {};
}

}  // namespace

Gradients Net::backward(const std::vector<Value>& losses, std::string_view prefix) {
  require(mode_ == Mode::training, "a net for inference has no gradients");
  for (const Value& loss : losses) result(loss);
  return Differentiation(*this, prefix).run(losses);
}

Gradients Net::accumulate(const Gradients& sum, const Gradients& more) {
  require(sum.size() == more.size(), "only gradients of the same weights can be added");
  const auto phase = std::exchange(phase_, Phase::backward);
  const auto outer_layer = layer_;
  Gradients added;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    require(sum[i].weight == more[i].weight, "only gradients of the same weights can be added");
    layer_ = more[i].layer;
    Value total = add(sum[i].gradient, reshape(more[i].gradient, sum[i].gradient.shape));
    graph_[total.tensor].kind = TensorKind::gradient;
    added.push_back({sum[i].weight, total, layer_});
  }
  phase_ = phase;
  layer_ = outer_layer;
  return added;
}

void Net::update(const Gradients& gradients, const Optimizer& optimizer) {
  const auto phase = std::exchange(phase_, Phase::update);
  // A weight that is updated twice in a step has one state: its name must not depend on where that is asked.
  auto outer_scope = std::exchange(scope_, {});
  const auto outer_layer = layer_;
  for (const auto& [weight, gradient, layer] : gradients) {
    const Value value{weight, graph_[weight].shape};
    Kernel kernel;
    kernel.operation = to_string(optimizer.kind == Optimizer::Kind::adam ? Operation::adam : Operation::sgd);
    kernel.attributes = to_attributes(OptimizerAttributes{optimizer.momentum, optimizer.beta1,
                                                          optimizer.beta2, optimizer.epsilon,
                                                          optimizer.weight_decay, optimizer.decoupled_decay});
    kernel.inputs = {operand(value), operand(reshape(gradient, value.shape))};
    kernel.outputs = {operand(value)};
    for (const char* state : states_of(optimizer)) {
      const TensorId id =
          persistent(state + graph_[weight].name, value.shape, TensorKind::optimizer_state, kZeros);
      kernel.inputs.push_back(operand({id, value.shape}));
      kernel.outputs.push_back(operand({id, value.shape}));
    }
    layer_ = layer;
    kernel.name = kernel_name(operation_of(kernel));
    emit(std::move(kernel));
  }
  phase_ = phase;
  scope_ = std::move(outer_scope);
  layer_ = outer_layer;
}

}  // namespace terrace
