// SPDX-License-Identifier: Apache-2.0
// How a model of the zoo takes sequences.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace terrace {

/// Returns which dimension of `tokens` and `target` is the sequence's; none where the model has no sequences,
/// or there is no such model.
std::optional<std::size_t> sequence_axis(std::string_view model);

}  // namespace terrace
