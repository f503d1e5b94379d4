// SPDX-License-Identifier: Apache-2.0
// How an operation is worked on in parts: by the rows of its weights, which are the features or channels that
// come out of it, or by the samples of a batch.
//
// One part of a linear layer by features makes some columns of y from some rows of the weight; one part of
// its backward pass makes those rows of the weight's gradient, or one summand of x's. By the batch it makes
// some rows of y, and a summand of the weight's gradient. Which operand takes part in which way is all that
// the pass has to know of an operation.
#pragma once

#include <optional>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

enum class Way : std::uint8_t { features, batch };

struct Share {
  enum class Kind : std::uint8_t {
    whole,   ///< every part takes all of it
    kept,    ///< the tensor itself is kept in parts, cut along `axis`
    cut,     ///< parts are taken out of the tensor, or put together to it
    either,  ///< one of the two
    sum,     ///< every part makes a summand
    filled,  ///< every part writes some of its rows, and leaves the others as they are
    bits,    ///< one for each element of the first input, in an order nobody knows: kept in parts
  };
  Kind kind = Kind::whole;
  std::uint8_t axis = 0;
};

struct Shares {
  std::vector<Share> inputs, outputs;
};

/// Returns the share of each operand of a kernel; nothing where the kernel cannot be split that way.
std::optional<Shares> shares_of(const Kernel& kernel, Way way);

/// Calls visit(operand, share) for every operand.
template <class Visit>
void for_each_share(const Kernel& kernel, const Shares& shares, Visit visit) {
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) visit(kernel.inputs[i], shares.inputs[i]);
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) visit(kernel.outputs[i], shares.outputs[i]);
}

}  // namespace terrace
