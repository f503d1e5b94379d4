// Claim: with half to four fifths of its DRAM replaced, training loses less than the 27.7% of AutoTM's paper,
// and large networks run twice as fast as with DRAM as a hardware cache.
//
//   bench/run autotm_paper [--quick] [--only conventional|large] [--network NAME]
//
//   conventional  001 Fig. 7, its means, and the prices of section 6.3
//   large         001 Fig. 8
//
// Simulated on the paper's machine (`optane-autotm`) with kernels estimated from its description: nothing is
// measured, and apart from solves that the clock ends it comes out the same everywhere. Every plan is
// verified. `ratio` is what is left of all-DRAM's speed with `best`, over the paper's 72.3%.
#include "autotm_tables.hpp"

namespace terrace::bench {
namespace {

struct Request {
  bool quick = false;
  std::string only, network;  ///< empty: all
};

/// Those that were asked for; a quick run takes the first.
template <std::size_t count>
std::vector<PaperNetwork> chosen(const Request& request, const PaperNetwork (&all)[count]) {
  std::vector<PaperNetwork> networks;
  for (const PaperNetwork& one : all) {
    if (request.network.empty() || request.network == one.name) networks.push_back(one);
  }
  if (request.quick && networks.size() > 1) networks.resize(1);
  return networks;
}

json conventional(const Request& request) {
  const auto parts = request.quick ? std::vector<unsigned>{4}
                                   : std::vector<unsigned>(std::begin(kPartsOfPmm), std::end(kPartsOfPmm));
  json details;
  details["rows"] = figure7(chosen(request, kConventional), parts);
  details["means"] = print_means(details["rows"]);
  print_costs(details["rows"]);
  return details;
}

void run(const Request& request) {
  json details = json::object();
  const auto asked = [&](const char* part) { return request.only.empty() || request.only == part; };
  if (asked("conventional")) details["conventional"] = conventional(request);
  if (asked("large")) details["large"] = figure8(chosen(request, kLarge));
  if (details.empty()) throw std::runtime_error("there is no such part: take conventional or large");
  std::vector<double> speeds;
  if (details.contains("conventional")) {
    for (const json& row : details["conventional"]["rows"]) {
      if (is_half_to_fifth(row)) speeds.push_back(speed_over(row, "best", "all-dram").value_or(NAN));
    }
  }
  for (double& speed : speeds) speed /= 1 - kPaperLoss;
  print_result("share of all-DRAM's speed with best at 4:1 and 1:1, over the paper's 72.3%, geometric mean",
               "above 1, and 2 over memory mode on large networks", geometric_mean(speeds),
               speeds.empty() ? json(nullptr) : spread(speeds), details);
}

Request request_of(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      request.quick = true;
    } else if (argument == "--only" && i + 1 < argc) {
      request.only = argv[++i];
    } else if (argument == "--network" && i + 1 < argc) {
      request.network = argv[++i];
    } else {
      throw std::runtime_error("unknown option '" + argument +
                               "': take --quick, --only PART or --network NAME");
    }
  }
  return request;
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  using namespace terrace::bench;
  try {
    run(request_of(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
