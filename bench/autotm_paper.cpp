// SPDX-License-Identifier: Apache-2.0
// Claim: in simulation, large networks run twice as fast as with DRAM as a hardware cache, as AutoTM's paper
// has it.
//
//   bench/run autotm_paper [--quick] [--only conventional|large|strategy] [--network NAME]
//
//   conventional  001 Fig. 7, its means, and the prices of section 6.3; tables without an aim
//   large         001 Fig. 8; the claim
//   strategy      001 Fig. 1 and 10: inception4 by its share of DRAM, where operands lie, what moves
//
// The paper's machine (`optane-autotm`) is simulated with kernels estimated from its description: nothing is
// measured, and the results are the same everywhere. Every plan is
// verified. `ratio` is the geometric mean of the speed of `best` over memory mode on large networks, over its
// aim of 2; it is null where that part did not run.
//
// The conventional part has no aim: its losses stand beside the paper's.
#include "autotm_strategy.hpp"
#include "autotm_tables.hpp"
#include "options.hpp"

namespace terrace::bench {
namespace {

/// Returns the networks that were asked for; a quick run takes the first.
template <std::size_t count>
std::vector<PaperNetwork> chosen(const PaperRequest& request, const PaperNetwork (&all)[count]) {
  std::vector<PaperNetwork> networks;
  for (const PaperNetwork& one : all) {
    if (request.asks_for_network(one.name)) networks.push_back(one);
  }
  if (request.quick && networks.size() > 1) networks.resize(1);
  return networks;
}

json conventional(const PaperRequest& request) {
  const auto parts = request.quick ? std::vector<unsigned>{4}
                                   : std::vector<unsigned>(std::begin(kPartsOfPmm), std::end(kPartsOfPmm));
  json details;
  details["rows"] = figure7(chosen(request, kConventional), parts);
  details["means"] = print_means(details["rows"]);
  print_costs(details["rows"]);
  return details;
}

constexpr double kAim = 2;

/// A row for which there is no plan makes the mean undefined: an aim is not met by leaving rows out.
std::vector<double> speeds_over_memory_mode(const json& rows) {
  std::vector<double> speeds;
  for (const json& row : rows) speeds.push_back(speed_over(row, "best", "memory-mode").value_or(NAN));
  return speeds;
}

void print_verdict(const std::vector<double>& speeds, json details) {
  const double mean = geometric_mean(speeds);
  std::vector<double> ratios = speeds;
  for (double& ratio : ratios) ratio /= kAim;
  if (!speeds.empty()) {
    print_line(fmt::format("\nspeed over memory mode on large networks: {:.2f}; the aim of {} is {}", mean,
                           kAim, mean >= kAim ? "met" : "missed"));
  }
  print_result("geometric mean of the speed of best over memory mode on large networks, over its aim of 2",
               "at least 1", mean / kAim, speeds.empty() ? json::array() : spread(ratios),
               std::move(details));
}

void run(const PaperRequest& request) {
  json details = json::object();
  std::vector<double> speeds;
  const auto conventional_networks = chosen(request, kConventional), large_networks = chosen(request, kLarge);
  if (request.asks_for("conventional") && !conventional_networks.empty())
    details["conventional"] = conventional(request);
  if (request.asks_for("strategy") && request.asks_for_network("inception4"))
    details["strategy"] = figures_1_and_10(request.quick);
  if (request.asks_for("large") && !large_networks.empty()) {
    details["large"] = figure8(large_networks);
    speeds = speeds_over_memory_mode(details["large"]);
  }
  if (details.empty()) {
    throw std::runtime_error(
        "there is no such part or network: take conventional, large or strategy, and a network of it");
  }
  print_verdict(speeds, std::move(details));
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) { return terrace::bench::paper_main(argc, argv, terrace::bench::run); }
