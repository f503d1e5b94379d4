#include "nn/models/attention.hpp"
#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {
namespace {

constexpr float kEpsilon = 1e-12F;
constexpr std::int64_t kTypes = 2;  ///< of sentences

class Parts {
 public:
  Parts(Net& net, const BertOptions& options) : net_(net), options_(options) {}

  Value embeddings(Value tokens) {
    const auto scope = net_.scope("embeddings");
    const Value words = embedding("word_embeddings", tokens, options_.vocabulary);
    table_ = net_.parameter("word_embeddings.weight", {options_.vocabulary, options_.hidden}, initial_);
    const Value types = embedding("token_type_embeddings", zeros_of(net_, tokens), kTypes);
    const Value places = embedding("position_embeddings", places_of(net_, tokens), options_.positions);
    const Value sum = net_.add(net_.add(words, types), places);
    return net_.dropout(net_.layer_norm("LayerNorm", sum, kEpsilon), options_.dropout);
  }

  Value layer(Value x) {
    {
      const auto scope = net_.scope("attention");
      x = output(attend(x), x);
    }
    const Value wide = net_.gelu(linear("intermediate.dense", x, 4 * options_.hidden));
    return output(wide, x);
  }

  /// Guesses the words at all places; without the pooler, which only sentence pairs need.
  Value predictions(Value x) {
    const auto scope = net_.scope("cls.predictions");
    x = net_.gelu(linear("transform.dense", x, options_.hidden));
    x = net_.layer_norm("transform.LayerNorm", x, kEpsilon);
    const Value bias = net_.parameter("bias", {options_.vocabulary}, kZeros);
    return tied_logits(net_, "decoder", x, table_, bias);
  }

 private:
  Value embedding(std::string_view name, Value indices, std::int64_t rows) {
    return net_.embedding(name, indices, rows, options_.hidden, initial_);
  }
  Value linear(std::string_view name, Value x, std::int64_t features) {
    return net_.linear(name, x, features, {.initial = initial_});
  }
  Value heads(std::string_view name, Value x) {
    return net_.split_heads(linear(name, x, options_.hidden), {.heads = options_.heads})[0];
  }
  Value attend(Value x) {
    const auto scope = net_.scope("self");
    const Value queries = heads("query", x), keys = heads("key", x), values = heads("value", x);
    return attention(net_, {queries, keys, values, {}, options_.dropout});
  }
  /// Adds to the residual stream and normalises it.
  Value output(Value x, Value residual) {
    const auto scope = net_.scope("output");
    x = net_.dropout(linear("dense", x, options_.hidden), options_.dropout);
    return net_.layer_norm("LayerNorm", net_.add(x, residual), kEpsilon);
  }

  Net& net_;
  const BertOptions& options_;
  Initial initial_ = normal(0.02F);
  Value table_;  ///< of words
};

}  // namespace

Value bert(Net& net, Value tokens, const BertOptions& options) {
  Parts parts(net, options);
  Value x = parts.embeddings(tokens);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto scope = net.scope("encoder.layer." + std::to_string(i));
    x = parts.layer(x);
  }
  return parts.predictions(x);
}

}  // namespace terrace::networks
