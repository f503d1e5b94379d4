#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {
namespace {

/// Everything starts within these bounds, biases included.
constexpr Initial kInitial{Initial::Kind::uniform, -0.05F, 0.05F};

Value layer(Net& net, const std::string& name, Value x, std::int64_t hidden) {
  // Made ahead of the layer, which would start as PyTorch's does.
  net.parameter(name + ".weight_ih", {4 * hidden, x.shape[2]}, kInitial);
  net.parameter(name + ".weight_hh", {4 * hidden, hidden}, kInitial);
  net.parameter(name + ".bias", {4 * hidden}, kInitial);
  return net.lstm(name, x, hidden);
}

}  // namespace

Value lstm(Net& net, Value tokens, const LstmOptions& options) {
  Value x = net.embedding("embedding", tokens, options.vocabulary, options.hidden, kInitial);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    x = layer(net, "lstm.l" + std::to_string(i), net.dropout(x, options.dropout), options.hidden);
  }
  x = net.reshape(net.dropout(x, options.dropout), {tokens.shape.elements(), options.hidden});
  net.parameter("decoder.weight", {options.vocabulary, options.hidden}, kInitial);
  net.parameter("decoder.bias", {options.vocabulary}, kInitial);
  return net.linear("decoder", x, options.vocabulary);
}

}  // namespace terrace::networks
