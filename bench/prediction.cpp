// SPDX-License-Identifier: Apache-2.0
// Claim: the simulator predicts how long a step takes and how much memory it needs before it is run.
//
//   bench/run prediction [--quick] [--tier file|emulated] [--planners a,b] [MODEL...]
//
// Every planner's plan for every model and budget is simulated and executed, on a disk and on memory that is
// emulated to be slower. The computer and the kernels are measured anew.
//
//   error    the predicted step against the median executed step
//   drift    steps with all memory, which alternate with the others, against the sum of the measured kernels:
//            how much slower the computer was than while the kernels were measured
//   beyond   the error when the prediction uses kernel times from those steps with all memory: the error of
//            the model without the computer's drift
//   excess   resident memory beyond the plan's and the program's own, over the plan's. The program's own is
//            what the process held before training began, what a run with all memory takes beside its
//            tensors, and the buffers that trainer.hpp states for a disk
#include <thread>

#include "contender.hpp"
#include "planned_training.hpp"

namespace terrace::bench {
namespace {

using nlohmann::json;
using namespace literals;

constexpr Bytes kDiskBuffers = 12_MiB;
constexpr double kMedianAim = 0.05, kWorstAim = 0.15, kExcessAim = 0.01;

struct Case {
  std::string model;
  std::int64_t batch = 0;
  json sequence = nullptr;
};

struct SlowTier {
  std::string name;
  json spec;  ///< null means a file in the cache folder
  bool is_disk() const { return spec.is_null(); }
};

struct Request {
  std::string program;
  bool quick = false;
  std::vector<std::string> models;  ///< empty means all
  std::string tier;                 ///< empty means all
  std::string planners;             ///< with commas between and around them; empty means all
};

std::vector<Case> cases(bool quick) {
  if (quick) return {{"mobilenet", 8}, {"lstm", 20}};
  return {{"resnet50", 16}, {"mobilenet", 32}, {"vgg16", 4}, {"lstm", 20}, {"gpt2", 1, 256}};
}

std::vector<std::string> budgets(bool quick) {
  return quick ? std::vector<std::string>{"40%"} : std::vector<std::string>{"20%", "50%"};
}

std::vector<SlowTier> slow_tiers() {
  return {{"file", nullptr}, {"emulated", "emulated:16GiB,read=6GB/s,write=3GB/s,latency=300ns"}};
}

json task_of(const Case& one, const SlowTier& slow, const json& fast, std::string_view planner) {
  return {{"model", one.model},
          {"batch", one.batch},
          {"sequence", one.sequence},
          {"threads", std::thread::hardware_concurrency()},
          {"fast", fast},
          {"slow", slow.spec},
          {"planner", planner}};
}

/// Measures the computer and the kernels, so that every run uses the same figures.
void prepare_caches(const json& task) {
  const Graph graph = graph_of(task);
  const Workload workload = prepare(workload_request(task, graph)).value();
  profile_of(workload, budget_of(workload, "100%").value()).value();
}

/// Returns the resident bytes beyond the tensors and what was resident before training began.
double beyond_tensors(const Contender& run, const json& summary) {
  return summary.at("peak_rss_bytes").get<double>() - run.ready().at("fixed_bytes").get<double>() -
         run.ready().at("planned_memory_bytes").get<double>();
}

/// The training with all memory that the others are measured against.
class Reference {
 public:
  Reference(const Request& request, const Case& one, const SlowTier& slow)
      : run_("terrace, all memory", {request.program, "--contender", task_of(one, slow, nullptr, "").dump()},
             {}) {
    run_.warm_up(1);
    run_.step();
    const double buffers = slow.is_disk() ? static_cast<double>(kDiskBuffers.count) : 0;
    own_memory_ = beyond_tensors(run_, run_.summary()) + buffers;
  }

  double step() { return run_.step().at("seconds"); }
  /// Returns the memory that the program needs besides its tensors while it trains.
  double own_memory() const { return own_memory_; }

 private:
  Contender run_;
  double own_memory_ = 0;
};

json row_of(const json& task, const std::string& tier, Contender& run, double own, double all_memory) {
  const json summary = run.summary();
  const double executed = summary.at("median_seconds"), predicted = run.ready().at("predicted_seconds");
  const double planned = run.ready().at("planned_memory_bytes");
  const double fast_only = run.ready().at("fast_only_seconds");
  return {{"model", task.at("model")},
          {"batch", task.at("batch")},
          {"tier", tier},
          {"fast", task.at("fast")},
          {"planner", task.at("planner")},
          {"predicted_seconds", predicted},
          {"executed_seconds", executed},
          {"executed_spread", summary.at("spread")},
          {"drift", all_memory / fast_only - 1},
          {"error", std::abs(predicted - executed) / executed},
          {"error_beyond_drift", std::abs(predicted + all_memory - fast_only - executed) / executed},
          {"predicted_exposed_seconds", run.ready().at("predicted_exposed_seconds")},
          {"executed_exposed_seconds", run.last().at("exposed_seconds")},
          {"planned_memory_bytes", planned},
          {"fixed_bytes", run.ready().at("fixed_bytes").get<double>() + own},
          {"peak_rss_bytes", summary.at("peak_rss_bytes")},
          {"excess", (beyond_tensors(run, summary) - own) / planned}};
}

void print_row(const json& row) {
  const auto text = [&](const char* key) { return row.at(key).get<std::string>(); };
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  std::printf(
      "%-10s %3d  %-8s %4s  %-12s predicted %.3f s, executed %.3f s: error %.1f%%, drift %+.1f%%, beyond "
      "it %.1f%%, excess %+.1f%%\n",
      text("model").c_str(), row.at("batch").get<int>(), text("tier").c_str(), text("fast").c_str(),
      text("planner").c_str(), number("predicted_seconds"), number("executed_seconds"), 100 * number("error"),
      100 * number("drift"), 100 * number("error_beyond_drift"), 100 * number("excess"));
  std::fflush(stdout);
}

json measure(const Request& request, const json& task, const std::string& tier, Reference& reference) {
  Contender run("terrace", {request.program, "--contender", task.dump()}, {});
  run.warm_up(2);
  std::vector<double> all_memory;
  for (int i = 0; i < (request.quick ? 3 : 7); ++i) {
    run.step();
    all_memory.push_back(reference.step());
  }
  json row = row_of(task, tier, run, reference.own_memory(), median(all_memory));
  print_row(row);
  return row;
}

/// Runs one case. A planner without a plan for this budget or tier is reported and left out.
void try_case(const Request& request, const json& task, const std::string& tier, Reference& reference,
              json& rows) {
  try {
    rows.push_back(measure(request, task, tier, reference));
  } catch (const std::exception& error) {
    std::printf("%s %s %s %s: left out: %s\n", task.at("model").get<std::string>().c_str(), tier.c_str(),
                task.at("fast").get<std::string>().c_str(), task.at("planner").get<std::string>().c_str(),
                error.what());
  }
}

bool is_asked_for(const Request& request, const PlannerInfo& planner) {
  return request.planners.empty() ||
         request.planners.find("," + std::string(planner.name) + ",") != std::string::npos;
}

/// A planner that keeps everything in fast memory gets enough for that.
std::vector<std::string> budgets_of(const PlannerInfo& planner, bool quick) {
  return planner.name == "all-fast" ? std::vector<std::string>{"110%"} : budgets(quick);
}

void measure_model(const Request& request, const Case& one, const SlowTier& slow, json& rows) {
  prepare_caches(task_of(one, slow, "100%", ""));
  Reference reference(request, one, slow);
  for (const PlannerInfo& planner : planners()) {
    if (!is_asked_for(request, planner)) continue;
    for (const std::string& fast : budgets_of(planner, request.quick))
      try_case(request, task_of(one, slow, fast, planner.name), slow.name, reference, rows);
  }
}

std::vector<double> column(const json& rows, const char* key) {
  std::vector<double> values;
  for (const json& row : rows) values.push_back(row.at(key));
  return values;
}

void run(const Request& request) {
  const ScratchFolder scratch("build/bench/prediction-" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
  json rows = json::array();
  for (const SlowTier& slow : slow_tiers()) {
    if (!request.tier.empty() && request.tier != slow.name) continue;
    for (const Case& one : cases(request.quick)) {
      const auto& models = request.models;
      if (models.empty() || std::find(models.begin(), models.end(), one.model) != models.end())
        measure_model(request, one, slow, rows);
    }
  }
  if (rows.empty())
    throw std::runtime_error(
        "nothing was measured: is there such a model, tier and planner? See the list in "
        "bench/prediction.cpp");
  const auto errors = column(rows, "error"), excess = column(rows, "excess"),
             beyond = column(rows, "error_beyond_drift");
  std::printf(
      "error: median %.1f%% (aim %.0f), worst %.1f%% (aim %.0f); beyond the computer's drift median "
      "%.1f%%, worst %.1f%%; excess at most %.1f%% (aim %.0f)\n",
      100 * median(errors), 100 * kMedianAim, 100 * quantile(errors, 1), 100 * kWorstAim,
      100 * median(beyond), 100 * quantile(beyond, 1), 100 * quantile(excess, 1), 100 * kExcessAim);
  print_result("simulated against executed step time, predicted against true peak",
               "median error 5%, worst 15%, peak within 1%", 1 - median(errors), spread(errors), rows);
}

Request request_of(const std::string& program, const std::vector<std::string>& arguments) {
  Request request{program, false, {}, {}, {}};
  read_options(arguments, {{"--quick", [&] { request.quick = true; }}},
               {{"--tier file|emulated", [&](const std::string& tier) { request.tier = tier; }},
                {"--planners a,b", [&](const std::string& names) { request.planners = "," + names + ","; }}},
               [&](const std::string& model) { return request.models.push_back(model), true; });
  if (request.quick && request.planners.empty()) request.planners = ",prefetch,next-use,lru,";
  return request;
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  using namespace terrace::bench;
  return contender_main(
      argc, argv, [argv](const std::vector<std::string>& arguments) { run(request_of(argv[0], arguments)); });
}
