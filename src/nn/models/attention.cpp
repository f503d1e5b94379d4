#include "nn/models/attention.hpp"

#include <cmath>

namespace terrace::networks {
namespace {

Value counting(Net& net, Value tokens, const char* what, std::int64_t period) {
  return net.positions(net.graph()[tokens.tensor].name + "." + what, tokens.shape, period);
}

}  // namespace

Value attention(Net& net, const Attention& operands) {
  const auto depth = static_cast<float>(operands.queries.shape[3]);
  Value x = net.matmul(operands.queries, operands.keys, {.transpose_b = true, .scale = 1 / std::sqrt(depth)});
  x = net.dropout(net.softmax(x, operands.softmax), operands.dropout);
  return net.merge_heads(net.matmul(x, operands.values), operands.queries.shape[1]);
}

Value places_of(Net& net, Value tokens) { return counting(net, tokens, "places", tokens.shape.back()); }
Value zeros_of(Net& net, Value tokens) { return counting(net, tokens, "types", 1); }

Value tied_logits(Net& net, std::string_view name, Value x, Value table, std::optional<Value> bias) {
  const auto scope = net.scope(name);
  const std::int64_t features = x.shape.back();
  return net.linear_with(net.reshape(x, {x.shape.elements() / features, features}), table, bias);
}

}  // namespace terrace::networks
