// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "ann/generate.hpp"
#include "ann/pictures.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/progress.hpp"
#include "terrace/ann.hpp"

namespace terrace::cli {
namespace {

using Json = nlohmann::json;
using Timer = std::chrono::steady_clock;

double since(Timer::time_point began) { return std::chrono::duration<double>(Timer::now() - began).count(); }

void row(std::string_view name, const std::string& value) { fmt::print("{:<12} {}\n", name, value); }

/// What every subcommand may be asked for.
struct Output {
  std::string json;

  std::unique_ptr<JsonFile> open() const { return json.empty() ? nullptr : std::make_unique<JsonFile>(json); }
};

void add_output(CLI::App& command, Output& output) {
  command.add_option("--json", output.json, "Writes the result to this file instead of printing it");
}

/// `30%` of `all`, or an amount.
Bytes share_of(const std::string& text, Bytes all, const char* option) {
  double percent = 0;
  if (text.ends_with('%') && reads_as(std::string_view(text).substr(0, text.size() - 1), percent) &&
      percent > 0 && percent <= 100)
    return Bytes{static_cast<std::uint64_t>(std::ceil(static_cast<double>(all.count) * percent / 100))};
  const auto amount = parse_bytes(text);
  if (!text.ends_with('%') && amount && amount->count > 0) return *amount;
  throw BadInput(fmt::format("{} '{}' is no amount of memory: give one such as 2GiB, or a share such as 20%",
                             option, text));
}

Json size_json(const ann::IndexSize& size) {
  return {{"vectors", size.vectors},
          {"nodes", size.nodes},
          {"promoted", size.promoted},
          {"removed", size.removed},
          {"marks_bytes", size.marks.count},
          {"dimension", size.dimension},
          {"fast_bytes", size.fast().count},
          {"slow_bytes", size.slow().count},
          {"fast_links_bytes", size.fast_links.count},
          {"fast_elements_bytes", size.fast_elements.count},
          {"fast_ids_bytes", size.fast_ids.count},
          {"searchers_bytes", size.searchers.count},
          {"cache_bytes", size.cache.count},
          {"slow_links_bytes", size.slow_links.count},
          {"slow_elements_bytes", size.slow_elements.count},
          {"slow_ids_bytes", size.slow_ids.count},
          {"slow_padding_bytes", size.slow_padding.count}};
}

void print_size(const ann::IndexSize& size) {
  row("vectors", fmt::format("{} of {} dimensions", size.vectors, size.dimension));
  row("fast", fmt::format("{}: {} nodes with links {}, vectors {}, ids {}; searching {}, cache {}",
                          readable(size.fast()), size.promoted, readable(size.fast_links),
                          readable(size.fast_elements), readable(size.fast_ids), readable(size.searchers),
                          readable(size.cache)));
  row("slow", fmt::format("{}: {} nodes with links {}, {} vectors {}, ids {}", readable(size.slow()),
                          size.nodes, readable(size.slow_links), size.nodes - size.promoted,
                          readable(size.slow_elements), readable(size.slow_ids)));
}

// ---- build

struct BuildRequest {
  std::string data, index, fast, metric = "l2", promotion = "degree", cache = "0";
  ann::BuildOptions options;
  Output output;
};

/// What an index of all nodes in fast memory would take: the whole of which --fast may name a share.
Bytes whole_size(const ann::Vectors& vectors, std::uint32_t links) {
  return Bytes{vectors.count() *
               (vectors.dimension * sizeof(float) + (2 * links + 1) * sizeof(std::uint32_t))};
}

void run_build(BuildRequest request) {
  const auto json = request.output.open();
  ann::BuildOptions& options = request.options;
  options.metric = expect(ann::parse_metric(request.metric));
  options.promotion = request.promotion == "degree" ? ann::Promotion::degree : ann::Promotion::random;
  ProgressLine line;
  line.show("reading " + request.data);
  ann::Vectors vectors = expect(ann::read_vectors(request.data));
  const Bytes whole = whole_size(vectors, options.links);
  if (!request.fast.empty()) options.fast = share_of(request.fast, whole, "--fast");
  if (request.cache != "0") options.cache = share_of(request.cache, whole, "--cache");
  const auto began = Timer::now();
  options.progress = [&](std::string_view stage, double share) {
    const double left = share > 0.01 ? since(began) / share * (1 - share) : 0;
    line.show(fmt::format("{}: {:3.0f}%{}", stage, share * 100,
                          left > 1 ? fmt::format(", {:.0f} s left", left) : ""));
  };
  const ann::Index index = expect(ann::Index::build(std::move(vectors), options));
  const double seconds = since(began);
  line.show("writing " + request.index);
  expect(index.save(request.index));
  line.clear();
  if (json) {
    Json result = size_json(index.size());
    result["index"] = request.index;
    result["metric"] = request.metric;
    result["build_seconds"] = seconds;
    json->write(result);
    return;
  }
  print_size(index.size());
  row("built", fmt::format("{} in {:.1f} s", request.index, seconds));
}

void add_build(CLI::App& ann_command) {
  auto request = std::make_shared<BuildRequest>();
  CLI::App* command = ann_command.add_subcommand("build", "Builds an index over a file of vectors");
  command->add_option("data", request->data, "fvecs, bvecs, fbin, u8bin or npy")->required();
  command->add_option("-o,--output", request->index, "The folder that becomes the index")->required();
  command->add_option(
      "--fast", request->fast,
      "Fast memory for searching it: an amount, or a share of the whole (without: all of it)");
  command->add_option("--cache", request->cache, "Part of it for what is read from a disk");
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
      ->add_option("--searchers", request->options.searchers, "Threads for whose search data --fast has room")
      ->check(whole_number<unsigned>(1, 1024));
  add_output(*command, request->output);
  command->callback([request] { run_build(*request); });
}

// ---- search and tune

struct SearchRequest {
  std::string index, queries, truth, slow = "memory", cache = "0", latency = "1ms", answers;
  std::size_t k = 10;
  double recall = 0.95;
  ann::SearchOptions options;
  Output output;
};

struct Opened {
  std::unique_ptr<Tier> tier;  // outlives the index
  ann::Index index;
};

Opened open_index(const SearchRequest& request) {
  ann::OpenOptions options;
  if (request.cache != "0") options.cache = share_of(request.cache, {}, "--cache");
  std::unique_ptr<Tier> tier;
  if (request.slow == "disk")
    options.placement = ann::Placement::disk;
  else if (request.slow != "memory")
    tier = expect(open_tier(request.slow));
  options.slow = tier.get();
  ann::Index index = expect(ann::Index::open(request.index, options));
  return {std::move(tier), std::move(index)};
}

void add_index_options(CLI::App& command, SearchRequest& request) {
  command.add_option("index", request.index, "A folder that `terrace ann build` made")->required();
  command.add_option("queries", request.queries, "A file of vectors")->required();
  command.add_option("-k", request.k, "Neighbours of each query")
      ->check(whole_number<std::size_t>(1, 1U << 20));
  command.add_option("--slow", request.slow,
                     "Where the lowest layer lies: memory, disk (its own file), or a tier's spec");
  command.add_option("--cache", request.cache, "Fast memory for what is read from the disk");
  add_output(command, request.output);
}

Json statistics_json(const ann::SearchStatistics& done) {
  const auto mean = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(done.queries);
  };
  return {{"fast_distances", mean(done.fast_distances)},
          {"slow_distances", mean(done.slow_distances)},
          {"fast_hops", mean(done.fast_hops)},
          {"slow_hops", mean(done.slow_hops)},
          {"slow_bytes", mean(done.slow_bytes)},
          {"reads", mean(done.reads)},
          {"rounds", mean(done.rounds)},
          {"hits", mean(done.hits)}};
}

void check_truth(const ann::Neighbours& truth, std::size_t queries, const std::string& name) {
  if (truth.size() == queries) return;
  throw BadInput(
      fmt::format("{} holds the neighbours of {} queries and there are {}", name, truth.size(), queries));
}

void run_search(const SearchRequest& request) {
  const auto json = request.output.open();
  const ann::Vectors queries = expect(ann::read_vectors(request.queries));
  if (queries.count() == 0) throw BadInput(request.queries + " holds no query");
  std::optional<ann::Neighbours> truth;
  if (!request.truth.empty()) {
    truth = expect(ann::read_neighbours(request.truth));
    check_truth(*truth, queries.count(), request.truth);
  }
  const Opened opened = open_index(request);
  const auto began = Timer::now();
  const ann::Neighbours found = expect(opened.index.search(queries, request.k, request.options));
  const double each = since(began) / static_cast<double>(queries.count());
  if (!request.answers.empty()) expect(ann::write_neighbours(request.answers, found));
  const Json work = statistics_json(opened.index.statistics());
  Json result{{"index", request.index},     {"queries", queries.count()}, {"k", request.k},
              {"ef1", request.options.ef1}, {"ef0", request.options.ef0}, {"seconds_per_query", each},
              {"work_per_query", work}};
  result["recall"] = truth ? Json(ann::recall(found, *truth, request.k)) : Json();
  if (json) return json->write(result);
  row("queries", fmt::format("{}, {:.1f} us each", queries.count(), each * 1e6));
  if (truth)
    row("recall", fmt::format("{:.4f} of the {} nearest", result["recall"].get<double>(), request.k));
  row("work",
      fmt::format(
          "{:.0f} distances in fast memory, {:.0f} in slow; {:.1f} reads in {:.1f} rounds for a query",
          work["fast_distances"].get<double>(), work["slow_distances"].get<double>(),
          work["reads"].get<double>(), work["rounds"].get<double>()));
}

void add_search(CLI::App& ann_command) {
  auto request = std::make_shared<SearchRequest>();
  CLI::App* command = ann_command.add_subcommand("search", "Finds the nearest neighbours of queries");
  add_index_options(*command, *request);
  command->add_option("--ef1", request->options.ef1, "Candidates in the upper layer")
      ->check(whole_number<std::uint32_t>(1, 1U << 20));
  command->add_option("--ef0", request->options.ef0, "Candidates in the lowest layer; 0 leaves it alone")
      ->check(whole_number<std::uint32_t>(0, 1U << 20));
  command->add_option("--beam", request->options.beam, "Nodes followed in one step of the lowest layer")
      ->check(whole_number<std::uint32_t>(1, 1024));
  command->add_option("--truth", request->truth,
                      "Exact neighbours (`terrace ann truth`), to tell the recall");
  command->add_option("--answers", request->answers, "Writes the neighbours to this file (.ibin)");
  command->callback([request] { run_search(*request); });
}

void run_tune(const SearchRequest& request) {
  const auto json = request.output.open();
  const ann::Vectors queries = expect(ann::read_vectors(request.queries));
  const ann::Neighbours truth = expect(ann::read_neighbours(request.truth));
  const ann::TuneGoal goal{request.k, request.recall, expect(parse_time(request.latency))};
  const Opened opened = open_index(request);
  const ann::TunedSearch tuned = expect(opened.index.tune(queries, truth, goal));
  if (json) {
    return json->write({{"index", request.index},
                        {"ef1", tuned.options.ef1},
                        {"ef0", tuned.options.ef0},
                        {"recall", tuned.recall},
                        {"predicted_seconds", tuned.predicted.count()},
                        {"fast_distance_seconds", tuned.times.fast_distance.count()},
                        {"slow_distance_seconds", tuned.times.slow_distance.count()},
                        {"settings", tuned.settings},
                        {"in_time", tuned.in_time},
                        {"tried", tuned.tried}});
  }
  row("setting", fmt::format("--ef1 {} --ef0 {}", tuned.options.ef1, tuned.options.ef0));
  row("recall", fmt::format("{:.4f} of the {} nearest, of queries learnt from", tuned.recall, request.k));
  row("predicted", fmt::format("{:.1f} us a query", tuned.predicted.count() * 1e6));
  row("distances",
      fmt::format("{:.0f} ns in fast memory, {:.0f} ns in slow", tuned.times.fast_distance.count() * 1e9,
                  tuned.times.slow_distance.count() * 1e9));
  row("settings", fmt::format("{}, of which {} are in time and {} were tried", tuned.settings, tuned.in_time,
                              tuned.tried));
}

void add_tune(CLI::App& ann_command) {
  auto request = std::make_shared<SearchRequest>();
  CLI::App* command =
      ann_command.add_subcommand("tune", "Chooses how far searches look, for a latency and a recall");
  add_index_options(*command, *request);
  command->add_option("--truth", request->truth, "Exact neighbours of the queries (`terrace ann truth`)")
      ->required();
  command->add_option("--latency", request->latency, "Mean time of a query, such as 1ms");
  command->add_option("--recall", request->recall, "Share of the k nearest that is found")
      ->check(positive_number());
  command->callback([request] { run_tune(*request); });
}

// ---- truth, info, data

struct TruthRequest {
  std::string data, queries, output, metric = "l2";
  std::size_t k = 10;
  unsigned threads = 1;
};

void add_truth(CLI::App& ann_command) {
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

struct InfoRequest {
  std::string index;
  bool check = false;
  Output output;
};

void add_info(CLI::App& ann_command) {
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
      Json result = size_json(index.size());
      result["metric"] = ann::to_string(index.metric());
      result["checked"] = request->check;
      return json->write(result);
    }
    print_size(index.size());
    row("metric", std::string(ann::to_string(index.metric())));
    if (request->check) row("checksums", "all agree");
  });
}

struct DataRequest {
  std::string recipe, output;
  std::uint64_t seed = 1;
  std::size_t intrinsic = 16, clusters = 100;
  double skew = 0, hubs = 0;
  bool queries = false;
};

std::size_t count_of(std::string_view text, const std::string& recipe) {
  std::size_t factor = 1;
  if (text.ends_with('k')) factor = 1000;
  if (text.ends_with('M')) factor = 1000'000;
  if (factor > 1) text.remove_suffix(1);
  std::size_t count = 0;
  if (reads_as(text, count) && count > 0 && count <= 0xFFFFFFFEU / factor) return count * factor;
  throw BadInput(fmt::format(
      "'{}' is no recipe: give fashion-mnist, or clustered:COUNT,DIMENSION such as clustered:1M,128",
      recipe));
}

ann::Vectors make_data(const DataRequest& request) {
  if (request.recipe == "fashion-mnist")
    return expect(ann::fashion_mnist(request.queries ? DataSplit::test : DataSplit::train));
  constexpr std::string_view kClustered = "clustered:";
  const std::size_t comma = request.recipe.find(',');
  if (!request.recipe.starts_with(kClustered) || comma == std::string::npos) count_of("", request.recipe);
  const std::string_view text = request.recipe;
  ann::Mixture mixture;
  mixture.count = count_of(text.substr(kClustered.size(), comma - kClustered.size()), request.recipe);
  mixture.dimension = count_of(text.substr(comma + 1), request.recipe);
  if (mixture.dimension > ann::kMostDimensions)
    throw BadInput(
        fmt::format("a vector has at most {} dimensions, not {}", ann::kMostDimensions, mixture.dimension));
  mixture.intrinsic = std::min(request.intrinsic, mixture.dimension);
  mixture.clusters = request.clusters;
  mixture.skew = request.skew;
  mixture.hubs = request.hubs;
  mixture.seed = request.seed;
  return ann::generate(mixture, request.queries ? 1 : 0);
}

void add_data(CLI::App& ann_command) {
  auto request = std::make_shared<DataRequest>();
  CLI::App* command = ann_command.add_subcommand("data", "Makes a file of vectors to try things with");
  command->add_option("recipe", request->recipe, "clustered:COUNT,DIMENSION or fashion-mnist")->required();
  command->add_option("-o,--output", request->output, "fvecs, fbin or npy")->required();
  command->add_flag("--queries", request->queries, "Other vectors of the same kind, to search for");
  command->add_option("--clusters", request->clusters, "Clusters")
      ->check(whole_number<std::size_t>(1, 1000'000));
  command->add_option("--intrinsic", request->intrinsic, "Dimensions that a cluster extends in")
      ->check(whole_number<std::size_t>(1, 65536));
  command->add_option("--skew", request->skew, "How much more common the first clusters are");
  command->add_option("--hubs", request->hubs, "How much vectors crowd around centres");
  command->add_option("--seed", request->seed, "The same seed makes the same file");
  command->callback([request] {
    const ann::Vectors vectors = make_data(*request);
    expect(ann::write_vectors(request->output, vectors));
    row("data", fmt::format("{} vectors of {} dimensions in {}", vectors.count(), vectors.dimension,
                            request->output));
  });
}

}  // namespace

void add_ann(CLI::App& app) {
  CLI::App* command = app.add_subcommand("ann", "Searches among vectors that do not fit in memory");
  command->require_subcommand(1);
  add_build(*command);
  add_search(*command);
  add_tune(*command);
  add_truth(*command);
  add_info(*command);
  add_data(*command);
}

}  // namespace terrace::cli
