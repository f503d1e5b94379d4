// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ann/generate.hpp"
#include "ann/pictures.hpp"
#include "cli/ann_common.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"

namespace terrace::cli {
namespace {

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

}  // namespace

void add_ann_data(CLI::App& ann_command) {
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

}  // namespace terrace::cli
