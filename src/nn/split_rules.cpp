// SPDX-License-Identifier: Apache-2.0
#include "nn/split_rules.hpp"

#include "nn/operation_table.hpp"

namespace terrace {
namespace {

using Kind = Share::Kind;

constexpr Share kWhole{Kind::whole}, kSum{Kind::sum}, kFilled{Kind::filled}, kBits{Kind::bits};
constexpr Share kRows{Kind::kept, 0}, kColumns{Kind::cut, 1};
constexpr Share kSamples{Kind::either, 0}, kSaved{Kind::kept, 0};
/// The shares of sequences, whose first extent is time.
constexpr Share kSequences{Kind::cut, 1}, kSavedSequences{Kind::kept, 1};

/// Operands that may be left out stand last.
Shares as_many(Shares shares, const Kernel& kernel) {
  shares.inputs.resize(kernel.inputs.size());
  shares.outputs.resize(kernel.outputs.size());
  return shares;
}

Shares all(const Kernel& kernel, Share share) {
  return {std::vector(kernel.inputs.size(), share), std::vector(kernel.outputs.size(), share)};
}

bool has_groups(const Kernel& kernel) {
  const OperationAttributes attributes = attributes_of(kernel);
  const auto* window = std::get_if<Window>(&attributes);
  return window != nullptr && window->groups > 1;
}

std::optional<Shares> by_features(const Kernel& kernel) {
  // A part of the filters belongs to some of the groups, and so would a part of x.
  if (has_groups(kernel)) return std::nullopt;
  switch (operation_of(kernel)) {
    case Operation::linear:
    case Operation::conv2d:
      return as_many({{kWhole, kRows, kRows}, {kColumns}}, kernel);
    case Operation::linear_backward_data:
    case Operation::conv2d_backward_data:
      return Shares{{kColumns, kRows}, {kSum}};
    case Operation::linear_backward_weights:
    case Operation::conv2d_backward_weights:
      return as_many({{kWhole, kColumns}, {kRows, kRows}}, kernel);
    case Operation::batch_norm:
      return as_many({{kColumns, kRows, kRows, kRows, kRows}, {kColumns, kRows, kRows, kRows, kRows, kBits}},
                     kernel);
    case Operation::batch_norm_backward:
      return as_many({{kColumns, kColumns, kRows, kRows, kRows, kBits}, {kColumns, kRows, kRows}}, kernel);
    case Operation::batch_norm_inference:
      return Shares{{kColumns, kRows, kRows, kRows, kRows}, {kColumns}};
    case Operation::embedding:
      return as_many({{kRows, kWhole, kFilled}, {kFilled}}, kernel);
    case Operation::embedding_backward:
      return Shares{{kWhole, kWhole}, {kRows}};
    case Operation::sgd:
    case Operation::adam:
    case Operation::add:
    case Operation::mul:
      return all(kernel, kRows);
    default:
      return std::nullopt;
  }
}

/// Batch normalisation is not here: its statistics are of the whole batch. Nor is dropout, whose random
/// numbers go by an element's place in the tensor.
std::optional<Shares> by_batch(const Kernel& kernel) {
  switch (operation_of(kernel)) {
    case Operation::linear:
    case Operation::conv2d:
    case Operation::conv_transpose2d:
      return as_many({{kSamples, kWhole, kWhole}, {kSamples}}, kernel);
    case Operation::linear_backward_data:
    case Operation::conv2d_backward_data:
    case Operation::conv_transpose2d_backward_data:
      return Shares{{kSamples, kWhole}, {kSamples}};
    case Operation::linear_backward_weights:
    case Operation::conv2d_backward_weights:
    case Operation::conv_transpose2d_backward_weights:
      return as_many({{kSamples, kSamples}, {kSum, kSum}}, kernel);
    case Operation::max_pool2d:
      return as_many({{kSamples}, {kSamples, kSaved}}, kernel);
    case Operation::max_pool2d_backward:
      return Shares{{kSamples, kSaved}, {kSamples}};
    case Operation::lstm:
      return Shares{{kSequences, kWhole, kWhole, kWhole}, {kSequences, kSavedSequences}};
    case Operation::lstm_backward:
      return Shares{{kSequences, kWhole, kWhole, kWhole, kSequences, kSequences, kSavedSequences},
                    {kSequences, kSum, kSum, kSum}};
    case Operation::layer_norm_backward:
      return Shares{{kSamples, kSamples, kSamples, kSamples, kWhole}, {kSamples, kSum, kSum}};
    case Operation::layer_norm:
      return Shares{{kSamples, kWhole, kWhole}, {kSamples, kSamples, kSamples}};
    default:
      return info_of(operation_of(kernel)).by_sample ? std::optional(all(kernel, kSamples)) : std::nullopt;
  }
}

}  // namespace

std::optional<Shares> shares_of(const Kernel& kernel, Way way) {
  return way == Way::features ? by_features(kernel) : by_batch(kernel);
}

}  // namespace terrace
