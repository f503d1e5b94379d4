// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/replace_file.hpp"
#include "cli/command.hpp"
#include "cli/workload_options.hpp"
#include "record/graph_file.hpp"
#include "terrace/graph_json.hpp"

namespace terrace::cli {
namespace {

struct GraphRequest : WorkloadOptions {
  std::string output;  ///< a file; empty: standard output
};

void run_graph(const GraphRequest& request) {
  if (!request.output.empty()) expect(check_replaceable(request.output));
  const Graph graph = request.training_graph();
  if (request.output.empty()) {
    fmt::print("{}", to_json_text(graph));
    return;
  }
  write_graph(graph, request.output);
  fmt::print("{}: {}, {} kernels, {} tensors\n", request.output, request.title(), graph.kernels.size(),
             graph.tensors.size());
}

}  // namespace

void add_graph(CLI::App& app) {
  auto request = std::make_shared<GraphRequest>();
  CLI::App* command = app.add_subcommand(
      "graph", "Writes a model's training step as a graph, which may stand wherever a model may");
  add_graph_options(*command, *request);
  command->add_option("-o,--output", request->output, "Write the graph to this file (default: print it)")
      ->type_name("FILE");
  command->callback([request] { run_graph(*request); });
}

}  // namespace terrace::cli
