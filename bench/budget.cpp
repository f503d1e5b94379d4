// SPDX-License-Identifier: Apache-2.0
// Claim: resnet50 trains in a fifth of its memory close to the bound, and many times faster than PyTorch does
// there with a swap file.
//
//   bench/run budget [--quick] [--fast 10,20,40,60] [--planner NAME,NAME..] [--without-pytorch] [MODEL...]
//
// Contenders are processes whose steps alternate: ours under a plan, with a disk behind it, in a memory
// control group of the given share of the graph's peak plus 350 MB, where it may not swap; the same engine
// with all memory; and PyTorch in a group of the same size with a swap file on the same disk. The computer
// and the kernels are measured anew. The benchmark needs root. Our losses must be the same as with all
// memory. Steps of several planners alternate, too; the ratio is that of the first.
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

/// A program takes this much beside its tensors: code, kernels' primitives, the graph and its plan.
constexpr Bytes kFixed{350'000'000};
constexpr Bytes kSwap = 12_GiB;
constexpr double kRatioAim = 8, kBoundAim = 1.10;

volatile std::sig_atomic_t interrupted = 0;

void stop_if_interrupted() {
  if (interrupted) throw std::runtime_error("interrupted: everything it made is gone again");
}

struct Request {
  std::string program;
  std::vector<std::string> planners{"best"};
  bool quick = false, with_pytorch = true;
  std::vector<int> percents{20};
  std::vector<std::string> models{"resnet50"};
};

/// Measures the computer and the kernels, so that every contender finds them in the cache; returns the
/// graph's peak.
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

/// Returns the bound with kernel times from the steps with all memory that alternate with ours, because the
/// computer may have drifted since the kernels were measured.
double bound_now(const Contender& mine, const Contender& all_memory) {
  const auto fact = [&](const char* name) { return mine.ready().at(name).get<double>(); };
  return fact("bound_seconds") + median(all_memory.seconds()) - fact("fast_only_seconds");
}

json row_of(Contender& mine, Contender& all_memory, const Attempted& pytorch) {
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
  if ((*pytorch).ready().at("parameters") != mine.ready().at("parameters"))
    throw std::runtime_error("PyTorch trains another network");
  row["pytorch"] = (*pytorch).summary();
  row.update(ratios_of((*pytorch).seconds(), mine.seconds()));
  return row;
}

/// Runs the steps of all contenders in turn. A planner that fails reports it in its own row.
class Comparison {
 public:
  Comparison(const Request& request, const Case& one, int percent, Bytes peak)
      : request_(request), limit_(peak * static_cast<std::uint64_t>(percent) / 100 + kFixed) {
    head_ = {{"model", one.model}, {"batch", one.batch},          {"percent", percent},
             {"rounds", rounds()}, {"limit_bytes", limit_.count}, {"graph_peak_bytes", peak.count}};
    mine_.resize(request.planners.size());
    for (std::size_t i = 0; i < mine_.size(); ++i) {
      const std::string& planner = request.planners[i];
      mine_[i].start([&] { return ours(request.program, planner, one, percent, limit_); }, 2);
    }
    all_memory_ = unlimited(request.program, one, percent);
    all_memory_->warm_up(2);
    if (request.with_pytorch) pytorch_.start([&] { return rival(one, limit_); }, 1);
  }

  std::vector<json> run() {
    for (int i = 0; i < rounds(); ++i) {
      for (Attempted& one : mine_) one.step();
      all_memory_->step();
      for (const Attempted& one : mine_) {
        if (one.lives()) require_same_bits(*one, *all_memory_);
      }
      if (request_.with_pytorch) pytorch_.step();
      stop_if_interrupted();
    }
    std::vector<json> rows;
    for (std::size_t i = 0; i < mine_.size(); ++i) {
      rows.push_back(head_);
      rows.back()["planner"] = request_.planners[i];
      if (mine_[i].lives()) {
        rows.back().update(row_of(*mine_[i], *all_memory_, pytorch_));
      } else {
        rows.back().update(json{{"failed", mine_[i].end()}, {"ratio", nullptr}});
      }
    }
    return rows;
  }

 private:
  int rounds() const { return request_.quick ? 1 : 5; }

  const Request& request_;
  const Bytes limit_;
  json head_;
  std::vector<Attempted> mine_;
  Owned all_memory_;
  Attempted pytorch_;
};

double number(const json& row, const char* part, const char* key) {
  return row.at(part).at(key).get<double>();
}

void print_row(const json& row) {
  const double mib = 1 << 20;
  if (row.contains("failed")) {
    std::printf("%s in %d%% with %s: %s\n", row.at("model").get<std::string>().c_str(),
                row.at("percent").get<int>(), row.at("planner").get<std::string>().c_str(),
                row.at("failed").get<std::string>().c_str());
    return;
  }
  std::printf(
      "%s %d in %d%% with %s: %.3f s, %.3f of the bound (aim %.2f; %.3f with kernels as they are now), %.3f "
      "of what was predicted, %.3f of the "
      "step with all memory; resident %.0f and group %.0f of %.0f MiB; same bits\n",
      row.at("model").get<std::string>().c_str(), row.at("batch").get<int>(), row.at("percent").get<int>(),
      row.at("planner").get<std::string>().c_str(), number(row, "terrace", "median_seconds"),
      row.at("over_bound").get<double>(), kBoundAim, row.at("over_bound_now").get<double>(),
      row.at("over_predicted").get<double>(), number(row, "over_all_memory", "ratio"),
      number(row, "terrace", "peak_rss_bytes") / mib, number(row, "terrace", "group_peak_bytes") / mib,
      row.at("limit_bytes").get<double>() / mib);
  if (!row.at("ratio").is_null()) {
    std::printf("  pytorch in the same group %.1f s: ratio %.1f (aim %.0f)\n",
                number(row, "pytorch", "median_seconds"), row.at("ratio").get<double>(), kRatioAim);
  }
  std::fflush(stdout);
}

/// Runs one case; a failure does not discard the results of the others.
std::vector<json> try_case(const Request& request, const Case& one, int percent, Bytes peak) {
  try {
    return Comparison(request, one, percent, peak).run();
  } catch (const std::exception& error) {
    stop_if_interrupted();
    return {{{"model", one.model},
             {"percent", percent},
             {"planner", request.planners.front()},
             {"failed", error.what()},
             {"ratio", nullptr}}};
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
      for (const json& row : try_case(request, one, percent, peak)) {
        print_row(row);
        if (row.at("planner") == request.planners.front() && !row.at("ratio").is_null())
          ratios.push_back(row.at("ratio"));
        rows.push_back(row);
      }
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

std::vector<std::string> planners_of(const std::string& list) {
  std::vector<std::string> all;
  std::stringstream parts(list);
  for (std::string one; std::getline(parts, one, ',');) all.push_back(one);
  if (all.empty()) throw std::runtime_error("--planner takes names such as best,sentinel");
  return all;
}

Request request_of(const std::string& program, const std::vector<std::string>& arguments) {
  Request request{program};
  std::vector<std::string> models;
  const auto take_model = [&](const std::string& name) {
    const auto known = [&](const Case& one) { return one.model == name; };
    if (std::any_of(cases().begin(), cases().end(), known)) return models.push_back(name), true;
    throw std::runtime_error("there is no model '" + name +
                             "' here: take resnet50, vgg16, resnet152, mobilenet, lstm or gpt2");
  };
  read_options(
      arguments,
      {{"--quick", [&] { request.quick = true; }},
       {"--without-pytorch", [&] { request.with_pytorch = false; }}},
      {{"--planner NAME,NAME", [&](const std::string& names) { request.planners = planners_of(names); }},
       {"--fast 10,20", [&](const std::string& percents) { request.percents = percents_of(percents); }}},
      take_model);
  if (!models.empty()) request.models = models;
  return request;
}

/// A signal that ends a contender must not end this program, which has to remove a swap file and control
/// groups: the signal only interrupts its read, which then fails.
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
