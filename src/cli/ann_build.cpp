// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/ann_common.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "cli/progress.hpp"

namespace terrace::cli {
namespace {

struct BuildRequest {
  std::string data, index, fast, metric = "l2", promotion = "degree", cache = "0", memory;
  ann::BuildOptions options;
  AnnOutput output;
};

/// Returns what an index of all nodes in fast memory would take: the whole of which --fast may name a share.
Bytes whole_size(const ann::Vectors& vectors, std::uint32_t links) {
  return Bytes{vectors.count() *
               (vectors.dimension * sizeof(float) + (2 * links + 1) * sizeof(std::uint32_t))};
}

/// Stages, the share of each that is done, and when it will be.
void show_progress(ann::BuildOptions& options, ProgressLine& line) {
  options.progress = [&line, stage = std::string(), began = Timer::now()](std::string_view name,
                                                                          double share) mutable {
    if (stage != name) {
      stage = name;
      began = Timer::now();
    }
    const double left = share > 0.01 ? since(began) / share * (1 - share) : 0;
    line.show(fmt::format("{}: {:3.0f}%{}", stage, share * 100,
                          left > 1 ? fmt::format(", {:.0f} s left", left) : ""));
  };
}

void report(const BuildRequest& request, const ann::Index& index, double seconds, JsonFile* json) {
  if (json != nullptr) {
    nlohmann::json result = size_json(index.size());
    result["index"] = request.index;
    result["metric"] = request.metric;
    result["build_seconds"] = seconds;
    return json->write(result);
  }
  print_size(index.size());
  row("built", fmt::format("{} in {:.1f} s", request.index, seconds));
}

/// Never holds all vectors.
void build_within(BuildRequest& request, ProgressLine& line, JsonFile* json) {
  ann::BuildOptions& options = request.options;
  if (request.fast.ends_with('%') || request.cache.ends_with('%'))
    throw BadInput("with --memory, --fast and --cache are amounts such as 2GiB, not shares");
  if (!request.fast.empty()) options.fast = share_of(request.fast, {}, "--fast");
  if (request.cache != "0") options.cache = share_of(request.cache, {}, "--cache");
  if (request.promotion != "degree") throw BadInput("with --memory, nodes are promoted by degree alone");
  const auto began = Timer::now();
  show_progress(options, line);
  expect(ann::build_index(request.data, request.index, options, share_of(request.memory, {}, "--memory")));
  line.clear();
  const ann::Index index = expect(ann::Index::open(request.index, {.placement = ann::Placement::disk}));
  report(request, index, since(began), json);
}

void run_build(BuildRequest request) {
  const auto json = request.output.open();
  ann::BuildOptions& options = request.options;
  options.metric = expect(ann::parse_metric(request.metric));
  options.promotion = request.promotion == "degree" ? ann::Promotion::degree : ann::Promotion::random;
  ProgressLine line;
  if (!request.memory.empty()) return build_within(request, line, json.get());
  line.show("reading " + request.data);
  ann::Vectors vectors = expect(ann::read_vectors(request.data));
  const Bytes whole = whole_size(vectors, options.links);
  if (!request.fast.empty()) options.fast = share_of(request.fast, whole, "--fast");
  if (request.cache != "0") options.cache = share_of(request.cache, whole, "--cache");
  const auto began = Timer::now();
  show_progress(options, line);
  const ann::Index index = expect(ann::Index::build(std::move(vectors), options));
  const double seconds = since(began);
  line.show("writing " + request.index);
  expect(index.save(request.index));
  line.clear();
  report(request, index, seconds, json.get());
}

}  // namespace

void add_ann_build(CLI::App& ann_command) {
  auto request = std::make_shared<BuildRequest>();
  CLI::App* command = ann_command.add_subcommand("build", "Builds an index over a file of vectors");
  command->add_option("data", request->data, "fvecs, bvecs, fbin, u8bin or npy")->required();
  command->add_option("-o,--output", request->index, "The folder that becomes the index")->required();
  command->add_option(
      "--fast", request->fast,
      "Fast memory for searching it: an amount, or a share of the whole (without: all of it)");
  command->add_option("--cache", request->cache, "Part of it for what is read from a disk");
  command->add_option("--memory", request->memory,
                      "Builds within this much memory, however large the data; goes on where it was killed");
  command->add_option("--builders", request->options.builders, "Threads that build within --memory")
      ->check(whole_number<unsigned>(1, 1024));
  command
      ->add_option("--codes", request->options.code_bytes,
                   "Bytes for each vector in fast memory that spare a disk reads; a quarter of the dimension")
      ->check(whole_number<std::uint32_t>(0, 65536));
  command->add_option("--m", request->options.links, "Links of a node; twice as many in the lowest layers")
      ->check(whole_number<std::uint32_t>(2, 1024));
  command->add_option("--ef-construction", request->options.ef_construction, "Candidates of an insertion")
      ->check(whole_number<std::uint32_t>(1, 1U << 20));
  command->add_option("--metric", request->metric, "l2, ip or cosine");
  command
      ->add_option("--promote", request->promotion, "Which nodes are kept in fast memory: degree or random")
      ->check(one_of({"degree", "random"}));
  command->add_option("--seed", request->options.seed, "The same seed builds the same index");
  command
      ->add_option("--searchers", request->options.searchers,
                   "Queries at once for whose search data --fast has room")
      ->check(whole_number<unsigned>(1, 1024));
  add_output(*command, request->output);
  command->callback([request] { run_build(*request); });
}

}  // namespace terrace::cli
