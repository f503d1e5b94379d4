// SPDX-License-Identifier: Apache-2.0
#include "terrace/models.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/table.hpp"
#include "graph/passes.hpp"
#include "terrace/lifetimes.hpp"

namespace terrace::cli {
namespace {

struct ModelsRequest {
  std::vector<std::string> names;  ///< none: all
  std::optional<std::int64_t> batch;
  std::string json;
};

/// One model at one batch size.
struct Row {
  ModelInfo info;
  std::int64_t batch = 0, parameters = 0;
  std::size_t kernels = 0, tensors = 0;
  Bytes peak;
};

Row row_of(const ModelInfo& info, std::optional<std::int64_t> batch) {
  auto built = build_model(info.name, {.batch = batch});
  if (!built) throw BadInput(built.error().message);
  const Graph graph = share_in_place(schedule(*std::move(built)));
  return {info,
          batch.value_or(info.batch),
          parameters(graph),
          graph.kernels.size(),
          graph.tensors.size(),
          Lifetimes(graph).peak_bytes()};
}

/// Throws BadInput where there is no such model.
ModelInfo model_named(const std::string& name) {
  for (const ModelInfo& info : models()) {
    if (info.name == name) return info;
  }
  throw BadInput(build_model(name, {}).error().message);
}

std::vector<ModelInfo> chosen(const std::vector<std::string>& names) {
  if (names.empty()) return {models().begin(), models().end()};
  std::vector<ModelInfo> infos;
  for (const std::string& name : names) infos.push_back(model_named(name));
  return infos;
}

nlohmann::json model_json(const Row& row) {
  return {{"model", row.info.name},       {"what", row.info.what},
          {"source", row.info.source},    {"batch", row.batch},
          {"parameters", row.parameters}, {"kernels", row.kernels},
          {"tensors", row.tensors},       {"graph_peak_bytes", row.peak.count}};
}

void print_table(const std::vector<Row>& rows) {
  using Align = Table::Align;
  Table table({{"model"},
               {"batch", Align::right},
               {"parameters", Align::right},
               {"kernels", Align::right},
               {"tensors", Align::right},
               {"peak", Align::right},
               {"what it is"}});
  for (const Row& row : rows) {
    table.add({std::string(row.info.name), std::to_string(row.batch),
               fmt::format("{:.2f} M", static_cast<double>(row.parameters) / 1e6),
               std::to_string(row.kernels), std::to_string(row.tensors), readable(row.peak),
               std::string(row.info.what)});
  }
  table.print();
}

void run_models(const ModelsRequest& request) {
  const std::vector<ModelInfo> infos = chosen(request.names);
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  std::vector<Row> rows;
  for (const ModelInfo& info : infos) rows.push_back(row_of(info, request.batch));
  if (!json) return print_table(rows);
  auto list = nlohmann::json::array();
  for (const Row& row : rows) list.push_back(model_json(row));
  json->write({{"models", list}});
}

}  // namespace

void add_models(CLI::App& app) {
  auto request = std::make_shared<ModelsRequest>();
  CLI::App* command = app.add_subcommand("models", "Lists the zoo: sizes of each model's training step");
  command->add_option("names", request->names, "Models to list (default: all)")->type_name("NAME");
  command->add_option("--batch", request->batch, "Batch size (default: each model's own)")->type_name("N");
  command->add_option("--json", request->json, "Write the result to this file instead of printing a table")
      ->type_name("FILE");
  command->callback([request] { run_models(*request); });
}

}  // namespace terrace::cli
