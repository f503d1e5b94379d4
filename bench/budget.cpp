// Claim: resnet50 trains in a fifth of its memory close to the bound, and many times faster than PyTorch does
// there with a swap file.
//
//   bench/run budget [--quick] [--fast 10,20,40,60] [--planner NAME] [--without-pytorch] [MODEL...]
//
// Contenders are processes whose steps alternate: ours under a plan, with a disk behind it, in a memory
// control group of the given share of the graph's peak plus 350 MB, where it may not swap; the same engine
// with all memory; and PyTorch in a group of the same size with a swap file on the same disk. The computer
// and the kernels are measured anew. Needs root. Losses of ours must be the same with all memory.
#include <csignal>
#include <limits>
#include <sstream>

#include "budget_contenders.hpp"
#include "planned_training.hpp"
#include "swap_file.hpp"

namespace terrace::bench {
namespace {

using nlohmann::json;
using namespace literals;

/// What a program takes beside its tensors: code, kernels' primitives, the graph and its plan.
constexpr Bytes kFixed{350'000'000};
constexpr Bytes kSwap = 12_GiB;
constexpr double kRatioAim = 8, kBoundAim = 1.10;

volatile std::sig_atomic_t interrupted = 0;

void stop_if_interrupted() {
  if (interrupted) throw std::runtime_error("interrupted: everything it made is gone again");
}

struct Request {
  std::string program, planner = "best";
  bool quick = false, with_pytorch = true;
  std::vector<int> percents{20};
  std::vector<std::string> models{"resnet50"};
};

/// Measures the computer and the kernels, so that every contender finds them; says how much memory there is
/// to want.
Bytes prepare_caches(const Case& one) {
  const json task = task_of(one, "100%");
  const Graph graph = graph_of(task);
  const Workload workload = prepare(workload_request(task, graph)).value();
  profile_of(workload, budget_of(workload, "100%").value()).value();
  return workload.program.peak;
}

void require_same_bits(const Contender& mine, const Contender& all_memory) {
  if (mine.last().at("loss") == all_memory.last().at("loss")) return;
  throw std::runtime_error("the losses differ: " + mine.last().at("loss").dump() + " in a part of memory, " +
                           all_memory.last().at("loss").dump() + " with all of it");
}

json ratios_of(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(over.size(), under.size()); ++i) ratios.push_back(over[i] / under[i]);
  return {{"ratio", median(ratios)}, {"spread", spread(ratios)}};
}

/// The bound with kernels as slow, or fast, as those of the steps with all memory beside ours: the computer
/// may have drifted since they were measured.
double bound_now(const Contender& mine, const Contender& all_memory) {
  const auto fact = [&](const char* name) { return mine.ready().at(name).get<double>(); };
  return fact("bound_seconds") + median(all_memory.seconds()) - fact("fast_only_seconds");
}

json row_of(Contender& mine, Contender& all_memory, const Rival& pytorch) {
  const double seconds = median(mine.seconds());
  json row{{"terrace", mine.summary()},
           {"terrace_all_memory", all_memory.summary()},
           {"plan", mine.ready()},
           {"moved_bytes", mine.last().at("moved_bytes")},
           {"exposed_seconds", mine.last().at("exposed_seconds")},
           {"over_bound", seconds / mine.ready().at("bound_seconds").get<double>()},
           {"over_bound_now", seconds / bound_now(mine, all_memory)},
           {"over_predicted", seconds / mine.ready().at("predicted_seconds").get<double>()},
           {"over_all_memory", ratios_of(mine.seconds(), all_memory.seconds())},
           {"same_bits", true},
           {"ratio", nullptr}};
  if (!pytorch.lives()) {
    row["pytorch"] = pytorch.end().empty() ? json() : json{{"ended", pytorch.end()}};
    return row;
  }
  row["pytorch"] = (*pytorch).summary();
  row.update(ratios_of((*pytorch).seconds(), mine.seconds()));
  return row;
}

json compare(const Request& request, const Case& one, int percent, Bytes peak) {
  const Bytes limit = peak * static_cast<std::uint64_t>(percent) / 100 + kFixed;
  const Owned mine = ours(request.program, request.planner, one, percent, limit),
              all_memory = unlimited(request.program, one, percent);
  mine->warm_up(2);
  all_memory->warm_up(2);
  Rival pytorch;
  const int rounds = request.quick ? 1 : 5;
  if (request.with_pytorch) pytorch.start([&] { return rival(one, limit); }, 1);
  for (int i = 0; i < rounds; ++i) {
    mine->step();
    all_memory->step();
    require_same_bits(*mine, *all_memory);
    if (request.with_pytorch) pytorch.step();
    stop_if_interrupted();
  }
  if (pytorch.lives() && (*pytorch).ready().at("parameters") != mine->ready().at("parameters"))
    throw std::runtime_error(one.model + ": PyTorch trains another network");
  json row{{"model", one.model},
           {"batch", one.batch},
           {"percent", percent},
           {"planner", request.planner},
           {"rounds", rounds},
           {"limit_bytes", limit.count},
           {"graph_peak_bytes", peak.count}};
  row.update(row_of(*mine, *all_memory, pytorch));
  return row;
}

double number(const json& row, const char* part, const char* key) {
  return row.at(part).at(key).get<double>();
}

void print_row(const json& row) {
  const double mib = 1 << 20;
  std::printf(
      "%s %d in %d%%: terrace %.3f s, %.3f of the bound (aim %.2f; %.3f with kernels as they are now), %.3f "
      "of what was predicted, %.3f of the "
      "step with all memory; resident %.0f and group %.0f of %.0f MiB; same bits\n",
      row.at("model").get<std::string>().c_str(), row.at("batch").get<int>(), row.at("percent").get<int>(),
      number(row, "terrace", "median_seconds"), row.at("over_bound").get<double>(), kBoundAim,
      row.at("over_bound_now").get<double>(), row.at("over_predicted").get<double>(),
      number(row, "over_all_memory", "ratio"), number(row, "terrace", "peak_rss_bytes") / mib,
      number(row, "terrace", "group_peak_bytes") / mib, row.at("limit_bytes").get<double>() / mib);
  if (!row.at("ratio").is_null()) {
    std::printf("  pytorch in the same group %.1f s: ratio %.1f (aim %.0f)\n",
                number(row, "pytorch", "median_seconds"), row.at("ratio").get<double>(), kRatioAim);
  }
  std::fflush(stdout);
}

/// One that fails does not take the others' results with it.
json try_case(const Request& request, const Case& one, int percent, Bytes peak) {
  try {
    json row = compare(request, one, percent, peak);
    print_row(row);
    return row;
  } catch (const std::exception& error) {
    stop_if_interrupted();
    std::printf("%s in %d%%: %s\n", one.model.c_str(), percent, error.what());
    return {{"model", one.model}, {"percent", percent}, {"failed", error.what()}, {"ratio", nullptr}};
  }
}

void run(const Request& request) {
  if (geteuid() != 0)
    throw std::runtime_error("this makes memory control groups and a swap file: run it as root");
  const ScratchFolder scratch("build/bench/budget-" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
  std::optional<SwapFile> swap;
  if (request.with_pytorch) swap.emplace(scratch.path() / "swap", kSwap);
  json rows = json::array();
  std::vector<double> ratios;
  for (const Case& one : cases()) {
    if (std::find(request.models.begin(), request.models.end(), one.model) == request.models.end()) continue;
    const Bytes peak = prepare_caches(one);
    stop_if_interrupted();
    for (const int percent : request.percents) {
      rows.push_back(try_case(request, one, percent, peak));
      if (!rows.back().at("ratio").is_null()) ratios.push_back(rows.back().at("ratio"));
    }
  }
  if (std::all_of(rows.begin(), rows.end(), [](const json& row) { return row.contains("failed"); }))
    throw std::runtime_error("nothing could be measured: see above");
  const bool none = ratios.empty();
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();  // null in JSON
  print_result("training in a share of memory against PyTorch with a swap file",
               "8 times as fast as PyTorch, within 1.10 of the bound",
               none ? kNoNumber : *std::min_element(ratios.begin(), ratios.end()),
               none ? json() : spread(ratios), rows);
}

// ---- what is asked ----

std::vector<int> percents_of(const std::string& list) {
  std::vector<int> all;
  std::stringstream parts(list);
  for (std::string one; std::getline(parts, one, ',');) {
    if (one.empty() || one.size() > 3 || one.find_first_not_of("0123456789") != one.npos || one == "0")
      throw std::runtime_error("--fast takes percentages such as 10,20,40 and not '" + list + "'");
    all.push_back(std::stoi(one));
  }
  return all;
}

Request request_of(const std::string& program, const std::vector<std::string>& arguments) {
  Request request{program};
  std::vector<std::string> models;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const auto known = [&](const Case& one) { return one.model == argument; };
    if (argument == "--quick") {
      request.quick = true;
    } else if (argument == "--without-pytorch") {
      request.with_pytorch = false;
    } else if (argument == "--planner" && i + 1 < arguments.size()) {
      request.planner = arguments[++i];
    } else if (argument == "--fast" && i + 1 < arguments.size()) {
      request.percents = percents_of(arguments[++i]);
    } else if (std::any_of(cases().begin(), cases().end(), known)) {
      models.push_back(argument);
    } else {
      throw std::runtime_error(
          "'" + argument +
          "' is no option and no model here: take --quick, --fast 10,20, --planner NAME, --without-pytorch, "
          "resnet50, vgg16, resnet152, mobilenet, lstm or gpt2");
    }
  }
  if (!models.empty()) request.models = models;
  return request;
}

/// What ends a contender must not end this program, which has a swap file and control groups to give back: a
/// signal only interrupts its reading, which fails then.
void outlive_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  struct sigaction interrupt {};
  interrupt.sa_handler = [](int) { interrupted = 1; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &interrupt, nullptr);
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  using namespace terrace::bench;
  return contender_main(argc, argv, [argv](const std::vector<std::string>& arguments) {
    const Request request = request_of(argv[0], arguments);
    outlive_signals();
    run(request);
  });
}
