// The batch a command works with where its user gave none: the model's own.
#pragma once

#include "terrace/models.hpp"

namespace terrace::cli {

/// pre: there is such a model
inline std::int64_t batch_of(std::string_view model, const ModelOptions& options) {
  if (options.batch) return *options.batch;
  for (const ModelInfo& info : models()) {
    if (info.name == model) return info.batch;
  }
  return 0;
}

}  // namespace terrace::cli
