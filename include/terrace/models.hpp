// SPDX-License-Identifier: Apache-2.0
// The model zoo: complete training steps of published networks, by name.
//
//   Graph graph = build_model("resnet50", {.batch = 32}).value();
//
// A training graph holds forward, backward and updates; no pass was applied. Inputs are `image` and `label`,
// or `tokens` and `target` (i32, already shifted by one for models that predict the next token; -100 does not
// count), or `image` and `noise`. The losses are its results, named `loss`, or `d_real`, `d_fake` and `g` for
// dcgan. A batch that is worked on in parts has `image.0`, `label.0`, `loss.0`, `image.1` and on.
// Thread-safe: nothing here has state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "terrace/net.hpp"
#include "terrace/result.hpp"

namespace terrace {

struct ModelInfo {
  std::string_view name;
  std::string_view what;    ///< in a line
  std::string_view source;  ///< where the network, its sizes and its names come from
  std::int64_t batch = 1;   ///< where none is given
};

struct ModelOptions {
  std::optional<std::int64_t> batch{};     ///< without it as in ModelInfo
  std::optional<std::int64_t> sequence{};  ///< tokens in a row, where there are any; without it as published
  /// The batch is worked on in so many equal parts, forward and backward for one after the other: less memory
  /// for the same gradients, but for what depends on a whole batch, as batch normalisation does.
  std::int64_t micro_batches = 1;
  std::optional<Optimizer> optimizer{};  ///< without it the one the network was published with
};

/// All models, in the order they are listed.
std::span<const ModelInfo> models();

/// The training graph of a model. Fails on an unknown name, naming the closest ones, and on numbers that make
/// no graph.
Result<Graph> build_model(std::string_view name, const ModelOptions& options);

/// The same network without training; its result is named `logits`. Image classifiers only; the whole batch
/// is one part.
Result<Graph> build_inference(std::string_view name, const ModelOptions& options);

}  // namespace terrace
