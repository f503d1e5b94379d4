// What the transformers share.
#pragma once

#include "terrace/net.hpp"

namespace terrace::networks {

/// Scaled dot-product attention. Queries, keys and values are [batch, heads, sequence, depth], the result is
/// [batch, sequence, heads * depth].
struct Attention {
  Value queries, keys, values;
  SoftmaxAttributes softmax;
  float dropout = 0;  ///< of the weights with which values are summed
};
Value attention(Net& net, const Attention& operands);

/// The place of every token in its sequence, as constants named after the tokens.
Value places_of(Net& net, Value tokens);
/// i32 zeros for every token.
Value zeros_of(Net& net, Value tokens);

/// Logits over an embedding's own rows: [rows, vocabulary].
Value tied_logits(Net& net, std::string_view name, Value x, Value table, std::optional<Value> bias = {});

}  // namespace terrace::networks
