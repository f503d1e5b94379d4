#include "backends/cpu/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/check.hpp"

namespace terrace::cpu {
namespace {

const dnnl_blocking_desc_t& blocking(const Desc& desc) { return desc.data.format_desc.blocking; }

/// Axes from the outermost to the innermost.
std::vector<int> order_of(const Desc& desc) {
  std::vector<int> order(static_cast<std::size_t>(desc.data.ndims));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return blocking(desc).strides[a] > blocking(desc).strides[b]; });
  return order;
}

std::int64_t block_of(const Desc& desc, int axis) {
  std::int64_t block = 1;
  for (int i = 0; i < blocking(desc).inner_nblks; ++i) {
    if (blocking(desc).inner_idxs[i] == axis) block *= blocking(desc).inner_blks[i];
  }
  return block;
}

/// `aBcd16b`
std::string format_name(const Desc& desc) {
  std::string name;
  for (const int axis : order_of(desc))
    name += static_cast<char>((block_of(desc, axis) > 1 ? 'A' : 'a') + axis);
  for (int i = 0; i < blocking(desc).inner_nblks; ++i) {
    name += fmt::format("{}{}", blocking(desc).inner_blks[i],
                        static_cast<char>('a' + blocking(desc).inner_idxs[i]));
  }
  return name;
}

void set_padding(Desc& desc) {
  for (int axis = 0; axis < desc.data.ndims; ++axis) {
    const std::int64_t block = block_of(desc, axis);
    desc.data.padded_dims[axis] = (desc.data.dims[axis] + block - 1) / block * block;
  }
}

/// Dense strides for axes in this order.
void set_strides(Desc& desc, const std::vector<int>& order) {
  auto& blocks = desc.data.format_desc.blocking;
  std::int64_t stride = 1;
  for (int i = 0; i < blocks.inner_nblks; ++i) stride *= blocks.inner_blks[i];
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    blocks.strides[*axis] = stride;
    stride *= desc.data.padded_dims[*axis] / block_of(desc, *axis);
  }
}

std::vector<std::int64_t> numbers(const std::string& text, char separator) {
  std::vector<std::int64_t> values;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) values.push_back(std::stoll(part));
  return values;
}

void read_inner_blocks(Desc& desc, const std::string& format) {
  auto& blocks = desc.data.format_desc.blocking;
  for (auto at = static_cast<std::size_t>(desc.data.ndims); at < format.size(); ++at) {
    std::size_t digits = 0;
    blocks.inner_blks[blocks.inner_nblks] = std::stoll(format.substr(at), &digits);
    at += digits;
    blocks.inner_idxs[blocks.inner_nblks++] = format[at] - 'a';
  }
}

}  // namespace

Dims dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

dnnl::memory::data_type type_of(DataType type) {
  switch (type) {
    case DataType::f32:
      return dnnl::memory::data_type::f32;
    case DataType::bf16:
      return dnnl::memory::data_type::bf16;
    case DataType::i32:
      return dnnl::memory::data_type::s32;
    case DataType::u8:
      return dnnl::memory::data_type::u8;
    case DataType::f16:
    case DataType::f64:
    case DataType::i64:
      break;  // refused when a graph is lowered
  }
  return dnnl::memory::data_type::undef;
}

Desc row_major(const Dims& dims, DataType type) {
  std::vector<int> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  return ordered(dims, order, type);
}

Desc ordered(const Dims& dims, const std::vector<int>& order, DataType type) {
  Dims strides(dims.size());
  std::int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[static_cast<std::size_t>(*axis)] = stride;
    stride *= dims[static_cast<std::size_t>(*axis)];
  }
  return {dims, type_of(type), strides};
}

Desc any(const Dims& dims, DataType type) { return {dims, type_of(type), dnnl::memory::format_tag::any}; }

bool is_open(const Desc& desc) { return desc.data.format_kind == dnnl_format_kind_any; }

Desc formatted_like(const Desc& like, const Dims& dims, DataType type) {
  Desc desc = like;
  desc.data.data_type = static_cast<dnnl_data_type_t>(type_of(type));
  std::copy(dims.begin(), dims.end(), desc.data.dims);
  set_padding(desc);
  set_strides(desc, order_of(like));
  return desc;
}

Desc with_padding(const Desc& desc) {
  Desc whole = desc;
  std::copy(desc.data.padded_dims, desc.data.padded_dims + desc.data.ndims, whole.data.dims);
  return whole;
}

bool is_blocked(const Desc& desc) {
  return desc.data.format_kind == dnnl_blocked && desc.data.extra.flags == dnnl_memory_extra_flag_none &&
         desc.data.offset0 == 0;
}

bool lies_row_major(const Desc& desc) {
  if (!is_blocked(desc) || blocking(desc).inner_nblks > 1) return false;
  if (blocking(desc).inner_nblks == 1) {
    // A block of the innermost axis that is longer than one keeps the order, if it needs no padding.
    const auto axis = blocking(desc).inner_idxs[0];
    if (desc.data.padded_dims[axis] != desc.data.dims[axis]) return false;
    for (auto i = axis + 1; i < desc.data.ndims; ++i) {
      if (desc.data.dims[i] != 1) return false;
    }
  }
  std::int64_t expected = 1;
  for (int i = desc.data.ndims; i-- > 0;) {
    const std::int64_t block = block_of(desc, i);
    if (desc.data.dims[i] != 1 && desc.data.dims[i] != block && blocking(desc).strides[i] != expected * block)
      return false;
    expected *= desc.data.dims[i];
  }
  return true;
}

bool same_memory(const Desc& a, const Desc& b) {
  return a == b || (a.dims() == b.dims() && lies_row_major(a) && lies_row_major(b));
}

std::string to_layout(const Desc& desc) {
  check(is_blocked(desc), "a layout is written down only for blocked formats");
  const auto count = desc.data.ndims;
  return fmt::format("{}:{}@{}", fmt::join(desc.data.dims, desc.data.dims + count, "x"), format_name(desc),
                     fmt::join(blocking(desc).strides, blocking(desc).strides + count, ","));
}

Desc from_layout(const std::string& layout, DataType type) {
  const auto colon = layout.find(':'), at = layout.find('@');
  check(colon != std::string::npos && at != std::string::npos, "a layout reads extents:format@strides");
  const auto dims = numbers(layout.substr(0, colon), 'x');
  const auto strides = numbers(layout.substr(at + 1), ',');
  check(dims.size() == strides.size(), "a layout has one stride for each extent");
  Desc desc = row_major(dims, type);
  std::copy(strides.begin(), strides.end(), desc.data.format_desc.blocking.strides);
  read_inner_blocks(desc, layout.substr(colon + 1, at - colon - 1));
  set_padding(desc);
  return desc;
}

Desc desc_of(const Tensor& tensor) {
  return tensor.layout.empty() ? row_major(tensor.shape, tensor.type)
                               : from_layout(tensor.layout, tensor.type);
}

}  // namespace terrace::cpu
