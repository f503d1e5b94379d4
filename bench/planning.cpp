// Claim: a graph of 10,000 kernels is planned with prefetch in a second, and verified and simulated in a
// fifth of one each.
//
// There are two graphs: random kernels, and a resnet200 whose batch is processed in parts until there are
// that many kernels. Nothing is executed; times are of planning on one core. Every plan is verified and
// simulated, and its prediction is checked.
#include <chrono>

#include "graph/passes.hpp"
#include "report.hpp"
#include "support/random_graph.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/models.hpp"
#include "terrace/planner.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace::bench {
namespace {

using nlohmann::json;
using namespace literals;

constexpr std::uint32_t kKernels = 10'000;
constexpr double kPlanAim = 1.0, kVerifyAim = 0.2, kSimulateAim = 0.2;

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Graph random_kernels() {
  RandomGraphOptions options;
  options.kernels = kKernels;
  options.least = 4_KiB;
  options.most = 4_MiB;
  options.result_share = 0;  // inputs and results cannot move, so many of them would leave nothing to plan
  return random_graph(options, 1);
}

Graph deep_network() {
  const std::size_t once = build_model("resnet200", {.batch = 1}).value().kernels.size();
  const auto parts = static_cast<std::int64_t>((kKernels + once - 1) / once);
  for (std::int64_t i = parts;; ++i) {
    const ModelOptions options{.batch = 8 * i, .micro_batches = i};
    Graph graph = share_in_place(schedule(build_model("resnet200", options).value()));
    if (graph.kernels.size() >= kKernels) return graph;
  }
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("the plan is wrong: ") + what);
}

struct Times {
  std::vector<double> plan, verify, simulate;
};

/// Plans, verifies and simulates once, and checks that the three agree.
std::size_t measure(const PlanRequest& request, Times& times) {
  Plan plan;
  times.plan.push_back(seconds_of([&] { plan = make_plan("prefetch", request).value(); }));
  std::vector<Violation> found;
  times.verify.push_back(seconds_of([&] { found = violations(request.graph, request.machine, plan); }));
  require(found.empty(), "the verifier rejects it");
  Timeline timeline;
  times.simulate.push_back(
      seconds_of([&] { timeline = simulate(request.graph, request.machine, request.profile, plan); }));
  require(timeline.step == plan.prediction.step, "it predicts another step than the simulator");
  require(plan.prediction.bound <= timeline.step, "its step is below the bound");
  require(!timeline.moved.empty(), "nothing moves, so there was nothing to plan");
  return plan.instructions.size();
}

json part(const std::vector<double>& seconds, double aim) {
  return {{"median_seconds", median(seconds)}, {"spread", spread(seconds)}, {"aim_seconds", aim}};
}

json measure(const std::string& name, const Graph& graph, int rounds) {
  const Machine machine = machine_preset("v100-pcie3").value();
  const Profile profile = estimate(graph, machine);
  std::vector<Bytes> budget;
  for (const MachineTier& tier : machine.tiers) budget.push_back(tier.capacity);
  const Bytes fifth = Lifetimes(graph).peak_bytes() / 5, least = least_budget(graph, machine).bytes;
  budget[0] = std::max(fifth, least + least / 10);
  const PlanRequest request{graph, machine, profile, budget};
  Times times;
  std::size_t instructions = 0;
  for (int i = 0; i < rounds; ++i) instructions = measure(request, times);
  return {{"graph", name},
          {"kernels", graph.kernels.size()},
          {"tensors", graph.tensors.size()},
          {"instructions", instructions},
          {"budget_bytes", budget[0].count},
          {"rounds", rounds},
          {"plan", part(times.plan, kPlanAim)},
          {"verify", part(times.verify, kVerifyAim)},
          {"simulate", part(times.simulate, kSimulateAim)}};
}

void print_row(const json& row) {
  const auto seconds = [&](const char* what) { return row.at(what).at("median_seconds").get<double>(); };
  std::printf(
      "%-10s %6zu kernels %7zu instructions  plan %.3f s (aim %.1f)  verify %.3f s (%.1f)  simulate %.3f s "
      "(%.1f)\n",
      row.at("graph").get<std::string>().c_str(), row.at("kernels").get<std::size_t>(),
      row.at("instructions").get<std::size_t>(), seconds("plan"), kPlanAim, seconds("verify"), kVerifyAim,
      seconds("simulate"), kSimulateAim);
  std::fflush(stdout);
}

void run(bool quick) {
  const int rounds = quick ? 3 : 9;
  json rows = json::array();
  std::vector<double> against_aim;
  const auto add = [&](const std::string& name, const Graph& graph) {
    rows.push_back(measure(name, graph, rounds));
    print_row(rows.back());
    for (const char* what : {"plan", "verify", "simulate"}) {
      const json& one = rows.back().at(what);
      against_aim.push_back(one.at("aim_seconds").get<double>() / one.at("median_seconds").get<double>());
    }
  };
  add("random", random_kernels());
  add("resnet200", deep_network());
  print_result("seconds to plan, verify and simulate 10,000 kernels",
               "planned in 1 s, verified in 0.2 s, simulated in 0.2 s",
               *std::min_element(against_aim.begin(), against_aim.end()), spread(against_aim), rows);
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) { return terrace::bench::guarded_main(argc, argv, terrace::bench::run); }
