// Claim: on two tiers at the paper's ratios of rates the modes rank none < L < LM (003 Fig. 2), and moving in
// the background gains more.
//
// The machine of 003 is scaled down: both tiers are emulated, with the rates of 001 and 002 chapter 7 divided
// by eight so that this computer's memory can reach them, and capacities of 180 GB and 1300 GB scaled to MiB.
// A kernel computes (spins) for a time that makes a run from slow memory alone 3-4 times slower than from
// fast memory alone, as in 003 Fig. 7, and is charged for the bytes it touches where they lie.
#include <fmt/format.h>

#include <chrono>
#include <map>

#include "report.hpp"
#include "sweep.hpp"

namespace {

using namespace terrace;
using namespace terrace::bench;

constexpr std::string_view kSlow = "emulated:1300MiB,read=4.875GB/s,write=1.625GB/s,latency=304ns";
constexpr std::string_view kFast = "emulated:180MiB,read=13GB/s,write=10GB/s,latency=79ns";
constexpr std::string_view kUnlimited = "emulated:1600MiB,read=13GB/s,write=10GB/s,latency=79ns";

struct Contender {
  std::string name;
  std::string_view policy, fast;
  int hints_ahead;  // kernels between a hint and its use; the paper's modes hint just before
};

const std::vector<Contender> kContenders{
    {"all fast", "first-touch", kUnlimited, 0},
    {"all slow", "all-slow", kFast, 0},
    {"first-touch", "first-touch", kFast, 0},
    {"lru", "lru", kFast, 0},
    {"none", "none", kFast, 0},
    {"L", "L", kFast, 0},
    {"LM", "LM", kFast, 0},
    {"LMP", "LMP", kFast, 0},
    {"async-LMP", "async-LMP", kFast, 6},
};

struct Measured {
  std::vector<double> seconds;
  double written = 0, read = 0, waited = 0;  // figures of the last step
};

// Runs one training step; its statistics are differences over the step.
void run_step(Manager& manager, Sweep& sweep, int ahead, Measured& measured) {
  const ManagerStatistics before = manager.statistics();
  const auto began = std::chrono::steady_clock::now();
  sweep.step(manager, ahead);
  measured.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  const ManagerStatistics after = manager.statistics();
  const auto over = [&](int from, int to) {
    return static_cast<double>((after.links[from][to].bytes - before.links[from][to].bytes).count) /
           1048576.0;
  };
  measured.written = over(0, 1);
  measured.read = over(1, 0);
  measured.waited = (after.waited - before.waited).count();
}

std::map<std::string, Measured> run_network(const Network& network, int rounds) {
  std::map<std::string, Measured> measured;
  for (int round = 0; round < rounds; ++round) {
    for (const Contender& contender : kContenders) {
      Manager manager({contender.fast, kSlow}, contender.policy);
      Sweep sweep(manager, network);
      Measured warm_up;
      run_step(manager, sweep, contender.hints_ahead, warm_up);
      run_step(manager, sweep, contender.hints_ahead, measured[contender.name]);
    }
  }
  return measured;
}

double seconds(std::map<std::string, Measured>& of, const std::string& name) {
  return median(of[name].seconds);
}

nlohmann::json report(const Network& network, std::map<std::string, Measured>& measured) {
  fmt::print("\n{}: footprint {}, fast memory 180 MiB\n", network.name, readable(network.footprint()));
  fmt::print("{:12} {:>9} {:>10} {:>14} {:>14} {:>9}\n", "", "ms/step", "of fast", "to slow, MiB",
             "from slow, MiB", "waited ms");
  nlohmann::json rows;
  for (const Contender& contender : kContenders) {
    const Measured& row = measured[contender.name];
    const double slowdown = median(row.seconds) / seconds(measured, "all fast");
    fmt::print("{:12} {:9.0f} {:9.2f}x {:14.0f} {:14.0f} {:9.0f}\n", contender.name,
               median(row.seconds) * 1e3, slowdown, row.written, row.read, row.waited * 1e3);
    rows[contender.name] = {{"seconds", median(row.seconds)}, {"spread", spread(row.seconds)},
                            {"slowdown", slowdown},           {"mib_to_slow", row.written},
                            {"mib_from_slow", row.read},      {"waited_seconds", row.waited}};
  }
  const double best_sync = std::min({seconds(measured, "LM"), seconds(measured, "LMP")});
  return {{"modes", rows},
          {"order_none_L_LM_holds", seconds(measured, "none") > seconds(measured, "L") &&
                                        seconds(measured, "L") > seconds(measured, "LM")},
          {"none_over_LM", seconds(measured, "none") / seconds(measured, "LM")},
          {"writes_L_over_LM", measured["L"].written / measured["LM"].written},
          {"best_synchronous_over_async", best_sync / seconds(measured, "async-LMP")}};
}

void run(bool quick) {
  const int rounds = quick ? 2 : 5;
  nlohmann::json details{
      {"rates", "fast 13 and 10 GB/s, slow 4.875 and 1.625: the paper's divided by eight, both emulated"}};
  std::vector<double> steps;  // the gain of each mode over the previous one, by network and round
  double least = 1e9;
  for (const Network& network : {densenet_like(), vgg_like()}) {
    std::map<std::string, Measured> measured = run_network(network, rounds);
    details[network.name] = report(network, measured);
    for (const auto& [worse, better] : {std::pair{"none", "L"}, std::pair{"L", "LM"}}) {
      least = std::min(least, seconds(measured, worse) / seconds(measured, better));
      for (int round = 0; round < rounds; ++round) {
        steps.push_back(measured[worse].seconds[round] / measured[better].seconds[round]);
      }
    }
  }
  print_result(
      "at the paper's ratios of rates, in small, the modes of CachedArrays rank none < L < LM; LM writes "
      "several times "
      "less to slow memory than L; background movement gains more",
      "ratio > 1: the least of none/L and L/LM over both networks; writes_L_over_LM about 3 for "
      "densenet-like (003 Fig. 5)",
      least, spread(steps), details);
}

}  // namespace

int main(int argc, char** argv) { return guarded_main(argc, argv, run); }
