#include "nn/models/attention.hpp"
#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {
namespace {

constexpr float kDeviation = 0.02F;

class Blocks {
 public:
  Blocks(Net& net, const GptOptions& options) : net_(net), options_(options) {}

  Value block(Value x) {
    x = net_.add(x, attend(net_.layer_norm("ln_1", x)));
    return net_.add(x, think(net_.layer_norm("ln_2", x)));
  }

 private:
  Value attend(Value x) {
    const auto scope = net_.scope("attn");
    x = net_.linear("c_attn", x, 3 * options_.hidden, {.initial = normal(kDeviation)});
    const auto parts = net_.split_heads(x, {.parts = 3, .heads = options_.heads});
    x = attention(net_, {parts[0], parts[1], parts[2], {.causal = true}, options_.dropout});
    return projected(x);
  }
  Value think(Value x) {
    const auto scope = net_.scope("mlp");
    x = net_.linear("c_fc", x, 4 * options_.hidden, {.initial = normal(kDeviation)});
    return projected(net_.gelu(x, {.tanh_approximation = true}));
  }
  /// Back into the residual stream, which sums two such parts per layer: their deviation shrinks by its root.
  Value projected(Value x) {
    const float deviation = kDeviation / std::sqrt(2 * static_cast<float>(options_.layers));
    x = net_.linear("c_proj", x, options_.hidden, {.initial = normal(deviation)});
    return net_.dropout(x, options_.dropout);
  }

  Net& net_;
  const GptOptions& options_;
};

}  // namespace

Value gpt(Net& net, Value tokens, const GptOptions& options) {
  const Initial initial = normal(kDeviation);
  const Value words = net.embedding("wte", tokens, options.vocabulary, options.hidden, initial);
  const Value places =
      net.embedding("wpe", places_of(net, tokens), options.positions, options.hidden, initial);
  Value x = net.dropout(net.add(words, places), options.dropout);
  Blocks blocks(net, options);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto scope = net.scope("h." + std::to_string(i));
    x = blocks.block(x);
  }
  const Value table = net.parameter("wte.weight", {options.vocabulary, options.hidden}, initial);
  return tied_logits(net, "lm_head", net.layer_norm("ln_f", x), table);
}

}  // namespace terrace::networks
