// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/table.hpp"
#include "terrace/planner.hpp"

namespace terrace::cli {
namespace {

struct Listed {
  std::string name, options, summary;
};

/// `+gap=, +seconds=`, as they are written behind a planner's name.
std::string options_text(std::string_view names) {
  std::string text;
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find(' ', at), names.size());
    text += fmt::format("{}+{}=", text.empty() ? "" : " ", names.substr(at, end - at));
    at = end + 1;
  }
  return text;
}

std::vector<Listed> all() {
  std::vector<Listed> list;
  for (const PlannerInfo& info : planners())
    list.push_back({std::string(info.name), options_text(info.options), std::string(info.summary)});
  list.push_back({"exec:PROGRAM", "",
                  "a program of yours: it reads a request and writes a plan, which is verified "
                  "(docs/formats/record.md)"});
  return list;
}

void run_planners(const std::string& file) {
  if (file.empty()) {
    Table table({{"planner"}, {"what it does"}, {"options"}});
    for (const Listed& one : all()) table.add({one.name, one.summary, one.options});
    return table.print();
  }
  auto list = nlohmann::json::array();
  for (const Listed& one : all())
    list.push_back({{"planner", one.name}, {"what", one.summary}, {"options", one.options}});
  JsonFile(file).write({{"planners", list}});
}

}  // namespace

void add_planners(CLI::App& app) {
  auto json = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("planners", "Lists all planners with their options");
  command->add_option("--json", *json, "Write the result to this file instead of printing a table")
      ->type_name("FILE");
  command->callback([json] { run_planners(*json); });
}

}  // namespace terrace::cli
