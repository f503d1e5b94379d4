#include "backends/cpu/preferences.hpp"

#include <algorithm>

#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

Descs natural(const Kernel& kernel) {
  Descs descs;
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) descs.inputs.push_back(natural_input(kernel, i));
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) descs.outputs.push_back(natural_output(kernel, i));
  return descs;
}

void open(Desc& desc) { desc = any(desc.dims()); }

/// Images and filters are open, biases are not.
void open_images(Descs& descs) {
  for (auto* side : {&descs.inputs, &descs.outputs}) {
    for (Desc& desc : *side) {
      if (desc.dims().size() >= 4) open(desc);
    }
  }
}

/// All operands that have the shape of `lead` lie like it.
void follow(const Kernel& kernel, Descs& descs, const Shape& lead, const Desc& like) {
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
    if (kernel.inputs[i].shape == lead) descs.inputs[i] = like;
  }
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    if (kernel.outputs[i].shape == lead) descs.outputs[i] = like;
  }
}

/// The first operand that does not lie row-major, else the first of all.
const Operand* choose_lead(const Kernel& kernel, const Stored& stored) {
  for (const Operand& operand : kernel.inputs) {
    const auto desc = stored(operand);
    if (desc && !lies_row_major(*desc)) return &operand;
  }
  return &kernel.inputs[0];
}

void follow_operand(const Kernel& kernel, const Stored& stored, Descs& descs, const Operand& lead) {
  if (const auto desc = stored(lead)) follow(kernel, descs, lead.shape, *desc);
}

std::int64_t block_along(const Desc& desc, std::size_t axis) {
  const auto& blocks = desc.data.format_desc.blocking;
  std::int64_t block = 1;
  for (int i = 0; i < blocks.inner_nblks; ++i) {
    if (blocks.inner_idxs[i] == static_cast<dnnl_dim_t>(axis)) block *= blocks.inner_blks[i];
  }
  return block;
}

/// Parts of an image keep its format if every part is made of whole blocks.
void follow_parts(const Kernel& kernel, Descs& descs, const std::vector<Operand>& parts,
                  const std::optional<Desc>& like) {
  if (!like || like->dims().size() != parts[0].shape.rank()) return;
  const auto axis = static_cast<std::size_t>(attributes_as<ConcatAttributes>(kernel).axis);
  const std::int64_t block = block_along(*like, axis);
  const auto is_whole = [&](const Operand& part) { return part.shape[axis] % block == 0; };
  if (!std::all_of(parts.begin(), parts.end(), is_whole)) return;
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
    descs.inputs[i] = formatted_like(*like, dims_of(kernel.inputs[i].shape));
  }
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    descs.outputs[i] = formatted_like(*like, dims_of(kernel.outputs[i].shape));
  }
}

void pool(const Kernel& kernel, const Stored& stored, PoolingFormats& formats, Descs& descs) {
  const bool forward =
      operation_of(kernel) == Operation::max_pool2d || operation_of(kernel) == Operation::avg_pool2d;
  const std::string large = to_string((forward ? kernel.inputs : kernel.outputs)[0].shape);
  std::optional<Desc> like;
  if (forward) {
    like = stored(kernel.inputs[0]);
    if (like) formats.insert_or_assign(large, *like);
  } else if (operation_of(kernel) == Operation::max_pool2d_backward) {
    like = stored(kernel.inputs[1]);  // the winners lie as forward's output did
  } else if (const auto known = formats.find(large); known != formats.end()) {
    like = known->second;
  }
  if (!like) like = row_major(kernel.inputs[0].shape);
  descs.inputs[0] = formatted_like(*like, dims_of(kernel.inputs[0].shape));
  descs.outputs[0] = formatted_like(*like, dims_of(kernel.outputs[0].shape));
}

}  // namespace

Descs preferred(const Kernel& kernel, const Stored& stored, PoolingFormats& formats) {
  Descs descs = natural(kernel);
  switch (operation_of(kernel)) {
    case Operation::conv2d:
    case Operation::conv2d_backward_data:
    case Operation::conv2d_backward_weights:
    case Operation::conv_transpose2d:
    case Operation::conv_transpose2d_backward_data:
    case Operation::conv_transpose2d_backward_weights:
      open_images(descs);
      break;
    case Operation::linear:
    case Operation::linear_backward_data:
      open(descs.inputs[1]);
      break;
    case Operation::linear_backward_weights:
      open(descs.outputs[0]);
      break;
    case Operation::lstm:
    case Operation::lstm_backward:
      for (const std::size_t i : {1U, 2U}) {
        open(descs.inputs[i]);
        if (operation_of(kernel) == Operation::lstm_backward) open(descs.outputs[i]);
      }
      break;
    case Operation::max_pool2d:
    case Operation::max_pool2d_backward:
    case Operation::avg_pool2d:
    case Operation::avg_pool2d_backward:
      pool(kernel, stored, formats, descs);
      break;
    // Gradients follow what forward left, which is larger or more often read.
    case Operation::batch_norm_backward:
    case Operation::relu_backward:
    case Operation::leaky_relu_backward:
    case Operation::gelu_backward:
    case Operation::tanh_backward:
      follow_operand(kernel, stored, descs, kernel.inputs[1]);
      break;
    case Operation::batch_norm:
    case Operation::batch_norm_inference:
    case Operation::relu:
    case Operation::leaky_relu:
    case Operation::gelu:
    case Operation::tanh:
    case Operation::sgd:
    case Operation::adam:
      follow_operand(kernel, stored, descs, kernel.inputs[0]);
      break;
    case Operation::add:
    case Operation::mul:
      follow_operand(kernel, stored, descs, *choose_lead(kernel, stored));
      break;
    case Operation::concat:
      follow_parts(kernel, descs, kernel.inputs, stored(*choose_lead(kernel, stored)));
      break;
    case Operation::concat_backward:
      follow_parts(kernel, descs, kernel.outputs, stored(kernel.inputs[0]));
      break;
    // Dropout among them: which elements it drops goes by their place in memory, which must not depend on
    // the neighbours that forward and backward have.
    default:
      break;
  }
  return descs;
}

}  // namespace terrace::cpu
