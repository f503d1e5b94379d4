// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/ann_common.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"

namespace terrace::cli {
namespace {

struct TruthRequest {
  std::string data, queries, output, metric = "l2";
  std::size_t k = 10;
  unsigned threads = 1;
};

struct InfoRequest {
  std::string index;
  bool check = false;
  AnnOutput output;
};

}  // namespace

void add_ann_truth(CLI::App& ann_command) {
  auto request = std::make_shared<TruthRequest>();
  CLI::App* command =
      ann_command.add_subcommand("truth", "Finds exact neighbours, by comparing with every vector");
  command->add_option("data", request->data, "A file of vectors")->required();
  command->add_option("queries", request->queries, "Another one")->required();
  command->add_option("-o,--output", request->output, "The file of neighbours (.ibin)")->required();
  command->add_option("-k", request->k, "Neighbours of each query")
      ->check(whole_number<std::size_t>(1, 1U << 20));
  command->add_option("--metric", request->metric, "l2, ip or cosine");
  command->add_option("--threads", request->threads, "Threads")->check(whole_number<unsigned>(1, 1024));
  command->callback([request] {
    const auto metric = expect(ann::parse_metric(request->metric));
    const auto vectors = expect(ann::read_vectors(request->data)),
               queries = expect(ann::read_vectors(request->queries));
    const auto found = expect(ann::exact_neighbours(vectors, queries, request->k, metric, request->threads));
    expect(ann::write_neighbours(request->output, found));
    row("truth", fmt::format("{} neighbours of each of {} queries in {}",
                             std::min(request->k, vectors.count()), queries.count(), request->output));
  });
}

void add_ann_info(CLI::App& ann_command) {
  auto request = std::make_shared<InfoRequest>();
  CLI::App* command = ann_command.add_subcommand("info", "Says what an index is and what it takes");
  command->add_option("index", request->index, "A folder that `terrace ann build` made")->required();
  command->add_flag("--check", request->check, "Reads all of it and compares its checksums");
  add_output(*command, request->output);
  command->callback([request] {
    const auto json = request->output.open();
    const ann::Index index = expect(ann::Index::open(request->index, {.placement = ann::Placement::disk}));
    if (request->check) expect(ann::verify_index(request->index));
    if (json) {
      nlohmann::json result = size_json(index.size());
      result["metric"] = ann::to_string(index.metric());
      result["checked"] = request->check;
      return json->write(result);
    }
    print_size(index.size());
    row("metric", std::string(ann::to_string(index.metric())));
    if (request->check) row("checksums", "all agree");
  });
}

}  // namespace terrace::cli
