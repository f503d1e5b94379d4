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
// verified. Each part has an aim for the geometric mean of `best`; `ratio` is the least of what was reached
// over its aim, so that 1 means that all parts that ran come up to theirs:
//
//   conventional  what is left of all-DRAM's speed at 4:1 and 1:1, over the paper's 72.3%: 1
//   large         speed over memory mode: 2
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

/// What one part came to, against its aim.
struct Verdict {
  std::string part, what;
  double aim;
  std::vector<double> values;  ///< of its rows

  double mean() const { return geometric_mean(values); }
  double ratio() const { return mean() / aim; }
  bool is_met() const { return ratio() >= 1; }
  json row() const { return {{"what", what}, {"aim", aim}, {"mean", mean()}, {"met", is_met()}}; }
};

/// A row for which there is no plan leaves no mean: an aim is not met by leaving rows out.
template <class Chosen>
std::vector<double> speeds_of_best(const json& rows, const char* over, Chosen chosen) {
  std::vector<double> speeds;
  for (const json& row : rows) {
    if (chosen(row)) speeds.push_back(speed_over(row, "best", over).value_or(NAN));
  }
  return speeds;
}

Verdict judge_conventional(const json& rows) {
  Verdict made{"conventional", "share of all-DRAM's speed at 4:1 and 1:1, over the paper's 72.3%", 1,
               speeds_of_best(rows, "all-dram", is_half_to_fifth)};
  for (double& speed : made.values) speed /= 1 - kPaperLoss;
  return made;
}

Verdict judge_large(const json& rows) {
  return {"large", "speed over memory mode on large networks", 2,
          speeds_of_best(rows, "memory-mode", is_any)};
}

/// The one that is furthest from its aim; one without a mean is further than any.
const Verdict& worst(const std::vector<Verdict>& verdicts) {
  return *std::min_element(verdicts.begin(), verdicts.end(), [](const Verdict& a, const Verdict& b) {
    return !std::isnan(b.ratio()) && (std::isnan(a.ratio()) || a.ratio() < b.ratio());
  });
}

void print_verdicts(const std::vector<Verdict>& verdicts, json details) {
  print_line("");
  for (const Verdict& one : verdicts) {
    details["verdict"][one.part] = one.row();
    print_line(fmt::format("{}: {:.2f}; the aim of {} is {}", one.what, one.mean(), one.aim,
                           one.is_met() ? "met" : "missed"));
  }
  const Verdict& least = worst(verdicts);
  std::vector<double> ratios = least.values;
  for (double& ratio : ratios) ratio /= least.aim;
  print_result("geometric means of what best reaches over their aims, the least of all parts",
               "at least 1: the share of all-DRAM's speed at 4:1 and 1:1 over the paper's 72.3% is 1, and "
               "the speed over memory mode on large networks 2",
               least.ratio(), spread(ratios), std::move(details));
}

void run(const Request& request) {
  json details = json::object();
  std::vector<Verdict> verdicts;
  const auto asked = [&](const char* part) { return request.only.empty() || request.only == part; };
  if (asked("conventional")) {
    details["conventional"] = conventional(request);
    verdicts.push_back(judge_conventional(details["conventional"]["rows"]));
  }
  if (asked("large")) {
    details["large"] = figure8(chosen(request, kLarge));
    verdicts.push_back(judge_large(details["large"]));
  }
  std::erase_if(verdicts, [](const Verdict& one) { return one.values.empty(); });  // it has no such network
  if (verdicts.empty()) {
    throw std::runtime_error(
        "there is no such part or network: take conventional or large, and a network of it");
  }
  print_verdicts(verdicts, std::move(details));
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
