// SPDX-License-Identifier: Apache-2.0
// What a command's user calls MODEL: a network of the zoo with its options, or a file that holds a graph.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "terrace/models.hpp"

namespace terrace::cli {

struct ModelChoice {
  std::string model;  ///< a name of the zoo, or a file
  ModelOptions options;
  std::string optimizer;  ///< empty: the one the network was published with

  /// Returns whether the text can only be a file: it has a path separator or ends in `.json`.
  bool is_file() const;
  /// Throws BadInput where there is no such model or file, or it makes no graph, and where options of the zoo
  /// were given with a file.
  Graph training_graph() const;
  /// Samples per step. A graph does not say which extent of its inputs that is: none for a file.
  std::optional<std::int64_t> batch() const;
  nlohmann::json batch_json() const;
  /// `mlp with batch 512` for a joint of ` with batch `; the file alone where it is one.
  std::string title(std::string_view joint = " with batch ") const;
};

}  // namespace terrace::cli
