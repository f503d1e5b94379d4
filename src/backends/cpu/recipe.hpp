// SPDX-License-Identifier: Apache-2.0
// How a graph kernel becomes a oneDNN primitive.
//
// A recipe is made from the kernel and a descriptor for each operand; a descriptor may leave the layout open
// (`any`), and the recipe then says what oneDNN chose. The same functions serve to choose layouts and to
// build the primitive.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/layout.hpp"

namespace terrace::cpu {

/// One descriptor per operand, in the kernel's order.
struct Descs {
  std::vector<Desc> inputs, outputs;
};

/// One argument of a primitive, and the operand that is bound to it.
struct Binding {
  int argument = 0;
  enum class Side : std::uint8_t { input, output } side = Side::input;
  std::size_t operand = 0;
};

/// One argument that is no operand: zeros to read, or what nobody reads. It lies in the scratch memory.
struct Spare {
  int argument = 0;
  Desc desc;
};

struct Recipe {
  dnnl::primitive_desc_base primitive;
  std::vector<Binding> bindings;
  std::vector<Spare> spares{};

  Desc desc(int argument) const;
  /// oneDNN's own, then the spares.
  Bytes scratch() const;
  Bytes own_scratch() const;
  /// Returns where a spare starts in the scratch memory.
  Bytes offset(std::size_t spare) const;
};

/// The processor as oneDNN sees it; the first call caps its instruction set where the processor claims more
/// than it can do.
const dnnl::engine& engine();

/// Empty for operations that oneDNN does not have.
std::optional<Recipe> recipe(const Kernel& kernel, const Descs& descs);

/// The other implementations that oneDNN has of a primitive for the same operands; without its reference
/// implementations, which are hundreds of times slower. None for backward primitives that oneDNN makes only
/// beside their forward one, and for copies.
std::vector<Recipe> alternatives(const Recipe& recipe);
/// The implementation of that name. pre: it is the recipe's or one of its alternatives
Recipe implemented_as(const Recipe& recipe, const std::string& name);

/// The direct algorithm for the operands of a convolution that `recipe` computes by Winograd's; nothing for
/// other kernels, and where it takes other layouts.
std::optional<Recipe> direct_convolution(const Kernel& kernel, const Descs& descs);

/// Returns how the operands of convolutions, linear layers and recurrent layers look to oneDNN when their
/// tensor is stored as PyTorch stores it. Groups become an axis of their own; transposed filters and gates
/// are seen in another order.
Desc natural_input(const Kernel& kernel, std::size_t input);
Desc natural_output(const Kernel& kernel, std::size_t output);

// By family; each gets the descriptors of the kernel's operands.
Recipe convolution_recipe(const Kernel& kernel, const Descs& descs);
Recipe transposed_recipe(const Kernel& kernel, const Descs& descs);
Recipe linear_recipe(const Kernel& kernel, const Descs& descs);
Recipe matmul_recipe(const Kernel& kernel, const Descs& descs);
Recipe pooling_recipe(const Kernel& kernel, const Descs& descs);
Recipe batch_norm_recipe(const Kernel& kernel, const Descs& descs);
Recipe elementwise_recipe(const Kernel& kernel, const Descs& descs);
Recipe binary_recipe(const Kernel& kernel, const Descs& descs);
Recipe concat_recipe(const Kernel& kernel, const Descs& descs);
Recipe reorder_recipe(const Kernel& kernel, const Descs& descs);
Recipe lstm_recipe(const Kernel& kernel, const Descs& descs);

/// Scratch memory is ours to give.
dnnl::primitive_attr user_scratchpad();

}  // namespace terrace::cpu
