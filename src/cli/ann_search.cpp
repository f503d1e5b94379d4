// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "cli/ann_common.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"

namespace terrace::cli {
namespace {

struct SearchRequest {
  std::string index, queries, truth, slow = "memory", cache = "0", latency = "1ms", answers;
  std::size_t k = 10;
  double recall = 0.95;
  ann::SearchOptions options;
  unsigned threads = 1;
  AnnOutput output;
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
  options.threads = request.threads;
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

void add_walk_options(CLI::App& command, SearchRequest& request) {
  command.add_option("--beam", request.options.beam, "Nodes followed in one step of the lowest layer")
      ->check(whole_number<std::uint32_t>(1, 1024));
  command
      .add_option("--shares", request.options.shares,
                  "Into which the entry points of the lowest layer are dealt out")
      ->check(whole_number<std::uint32_t>(1, 1024));
  command.add_option("--threads", request.threads, "Threads that work on the shares of a query")
      ->check(whole_number<unsigned>(1, 256));
  command
      .add_option("--ahead", request.options.ahead,
                  "Nodes whose links are brought while the upper layer is searched")
      ->check(whole_number<std::uint32_t>(0, 1024));
}

nlohmann::json statistics_json(const ann::SearchStatistics& done) {
  const auto mean = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(done.queries);
  };
  return {{"fast_distances", mean(done.fast_distances)},
          {"slow_distances", mean(done.slow_distances)},
          {"guesses", mean(done.guesses)},
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
  const nlohmann::json work = statistics_json(opened.index.statistics());
  nlohmann::json result{
      {"index", request.index},     {"queries", queries.count()}, {"k", request.k},
      {"ef1", request.options.ef1}, {"ef0", request.options.ef0}, {"seconds_per_query", each},
      {"work_per_query", work}};
  result["recall"] = truth ? nlohmann::json(ann::recall(found, *truth, request.k)) : nlohmann::json();
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
  add_walk_options(*command, *request);
  command->add_option("--truth", request->truth,
                      "Exact neighbours (`terrace ann truth`), to tell the recall");
  command->add_option("--answers", request->answers, "Writes the neighbours to this file (.ibin)");
  command->callback([request] { run_search(*request); });
}

void run_tune(const SearchRequest& request) {
  const auto json = request.output.open();
  const ann::Vectors queries = expect(ann::read_vectors(request.queries));
  const ann::Neighbours truth = expect(ann::read_neighbours(request.truth));
  const ann::TuneGoal goal{request.k,
                           request.recall,
                           expect(parse_time(request.latency)),
                           request.options.beam,
                           request.options.shares,
                           request.options.ahead};
  const Opened opened = open_index(request);
  const ann::TunedSearch tuned = expect(opened.index.tune(queries, truth, goal));
  if (json) {
    return json->write({{"index", request.index},
                        {"ef1", tuned.options.ef1},
                        {"ef0", tuned.options.ef0},
                        {"beam", tuned.options.beam},
                        {"ahead", tuned.options.ahead},
                        {"recall", tuned.recall},
                        {"predicted_seconds", tuned.predicted.count()},
                        {"fast_distance_seconds", tuned.times.fast_distance.count()},
                        {"slow_distance_seconds", tuned.times.slow_distance.count()},
                        {"settings", tuned.settings},
                        {"in_time", tuned.in_time},
                        {"tried", tuned.tried}});
  }
  row("setting", fmt::format("--ef1 {} --ef0 {} --beam {} --ahead {}", tuned.options.ef1, tuned.options.ef0,
                             tuned.options.beam, tuned.options.ahead));
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
  request->options.beam = 0;  // chosen, unless it is given
  add_index_options(*command, *request);
  command->add_option("--truth", request->truth, "Exact neighbours of the queries (`terrace ann truth`)")
      ->required();
  add_walk_options(*command, *request);
  command->add_option("--latency", request->latency, "Mean time of a query, such as 1ms");
  command->add_option("--recall", request->recall, "Share of the k nearest that is found")
      ->check(positive_number());
  command->callback([request] { run_tune(*request); });
}

}  // namespace

void add_ann_search(CLI::App& ann_command) {
  add_search(ann_command);
  add_tune(ann_command);
}

}  // namespace terrace::cli
