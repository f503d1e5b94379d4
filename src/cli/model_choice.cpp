#include "cli/model_choice.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "record/graph_file.hpp"

namespace terrace::cli {
namespace {

/// A graph file says all this itself.
void refuse_options(const ModelChoice& choice) {
  const auto refuse = [&](const char* option) {
    throw BadInput(
        fmt::format("{} is for models of the zoo, and {} holds its graph as it is: leave it out, or "
                    "write the graph again with terrace graph",
                    option, choice.model));
  };
  if (choice.options.batch) refuse("--batch");
  if (choice.options.sequence) refuse("--sequence");
  if (choice.options.micro_batches != 1) refuse("--micro-batches");
  if (!choice.optimizer.empty()) refuse("--optimizer");
}

}  // namespace

bool ModelChoice::is_file() const { return model.ends_with(".json") || model.find('/') != std::string::npos; }

Graph ModelChoice::training_graph() const {
  if (is_file()) {
    refuse_options(*this);
    return expect(read_graph(model));
  }
  ModelOptions chosen = options;
  if (optimizer == "sgd") chosen.optimizer = Optimizer{.kind = Optimizer::Kind::sgd};
  if (optimizer == "adam") chosen.optimizer = Optimizer{.kind = Optimizer::Kind::adam};
  return expect(build_model(model, chosen));
}

std::optional<std::int64_t> ModelChoice::batch() const {
  if (options.batch) return options.batch;
  for (const ModelInfo& info : models()) {
    if (info.name == model) return info.batch;
  }
  return std::nullopt;
}

nlohmann::json ModelChoice::batch_json() const {
  const auto samples = batch();
  return samples ? nlohmann::json(*samples) : nlohmann::json();
}

std::string ModelChoice::title(std::string_view joint) const {
  const auto samples = batch();
  return samples ? fmt::format("{}{}{}", model, joint, *samples) : model;
}

}  // namespace terrace::cli
