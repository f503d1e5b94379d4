// SPDX-License-Identifier: Apache-2.0
// Layouts: how the elements of a tensor lie in memory, as oneDNN describes it and as a graph writes it down.
//
// A graph's text for a layout, `32x64x56x56:aBcd16b@200704,50176,896,16`, holds the extents as the kernels
// see them, the order of axes with its inner blocks (for people) and the strides of the outer blocks; it
// gives back the same descriptor exactly. The empty text is row-major in the tensor's own shape.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "terrace/graph.hpp"

namespace terrace::cpu {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

Dims dims_of(const Shape& shape);
dnnl::memory::data_type type_of(DataType type);

Desc row_major(const Dims& dims, DataType type = DataType::f32);
inline Desc row_major(const Shape& shape, DataType type = DataType::f32) {
  return row_major(dims_of(shape), type);
}
/// `order` lists the axes of `dims` from the outermost to the innermost in memory.
Desc ordered(const Dims& dims, const std::vector<int>& order, DataType type = DataType::f32);
/// Leaves the choice to oneDNN.
Desc any(const Dims& dims, DataType type = DataType::f32);
bool is_open(const Desc& desc);
/// The order and inner blocks of `like` for other extents. pre: as many axes
Desc formatted_like(const Desc& like, const Dims& dims, DataType type = DataType::f32);

/// The same memory with its padding counted as elements.
Desc with_padding(const Desc& desc);

/// Returns whether its bytes lie as in a row-major tensor, whatever the descriptor says.
bool lies_row_major(const Desc& desc);
/// Returns whether two descriptors put every element at the same place.
bool same_memory(const Desc& a, const Desc& b);

/// pre: a blocked format, which is all that `is_blocked` accepts
std::string to_layout(const Desc& desc);
Desc from_layout(const std::string& layout, DataType type);
bool is_blocked(const Desc& desc);

/// Returns how a stored tensor is seen in its own extents.
Desc desc_of(const Tensor& tensor);

}  // namespace terrace::cpu
