// SPDX-License-Identifier: Apache-2.0
// Claim: in simulation, CachedArrays' best mode trains the networks of its Table III 1.4 to 2.03 times as
// fast as memory mode, as its paper has it.
//
//   bench/run cachedarrays_paper [--quick] [--only large|cache|small|executed] [--network NAME]
//
//   large   003 Fig. 2 and 5: a step in each mode, and what it reads and writes in slow memory
//   cache   003 Fig. 3, 4 and 6: what 2LM's heap comes to, what its cache does, and the use of DRAM's bus
//   small   003 Fig. 7: a step of LM as fast memory shrinks, and of slow memory alone
//   executed  the modes on networks that fit here, live and as recorded plans; wants a quiet computer
//
// The paper's machine (`optane-cachedarrays`) is simulated with kernels estimated from its description, so
// that results are the same everywhere. Every plan is verified. `ratio` is the geometric mean over networks
// of the speed of the best mode over memory mode without hints, over 1.4, the least that the paper has.
#include <fmt/format.h>

#include <cmath>

#include "cachedarrays_executed.hpp"
#include "options.hpp"
#include "report.hpp"

namespace terrace::bench {
namespace {

using nlohmann::json;

struct PaperNetwork {
  const char* name;
  std::int64_t batch;
  double footprint_gb;  ///< 003 Table III
};
constexpr PaperNetwork kLarge[] = {
    {"densenet264", 1536, 526}, {"resnet200", 2048, 529}, {"vgg416", 256, 520}};
constexpr PaperNetwork kSmall[] = {{"densenet264", 504, 175}, {"resnet200", 640, 175}, {"vgg116", 320, 175}};
constexpr double kFastGb = 180;
constexpr const char* kModes[] = {"ca-none", "ca-l", "ca-lm", "ca-lmp", "best"};

struct SlowTraffic {
  double read = 0, written = 0;  ///< GB, by kernels and copies
};

SlowTraffic slow_traffic(const Graph& graph, const Plan& plan) {
  SlowTraffic traffic;
  for (const Instruction& instruction : plan.instructions) {
    if (const auto* copy = std::get_if<Copy>(&instruction)) {
      double bytes = 0;
      for (const TensorId tensor : copy->tensors) bytes += static_cast<double>(graph[tensor].bytes.count);
      (copy->to.index > 0 ? traffic.written : traffic.read) += bytes / 1e9;
    } else if (const auto* run = std::get_if<Run>(&instruction)) {
      const Kernel& kernel = graph[run->kernel];
      for (std::size_t i = 0; i < kernel.inputs.size(); ++i)
        if (run->tiers[i].index > 0)
          traffic.read += static_cast<double>(kernel.inputs[i].touched.count) / 1e9;
      for (std::size_t i = 0; i < kernel.outputs.size(); ++i)
        if (run->tiers[kernel.inputs.size() + i].index > 0)
          traffic.written += static_cast<double>(kernel.outputs[i].touched.count) / 1e9;
    }
  }
  return traffic;
}

/// DRAM is as large a share of the peak as in the paper: our networks take other bytes than the paper's.
json large_row(const PaperNetwork& network) {
  const Simulated on(zoo_model(network.name, network.batch), "optane-cachedarrays");
  const double share = kFastGb / network.footprint_gb;
  json row{{"model", network.name},
           {"batch", network.batch},
           {"peak_bytes", on.peak().count},
           {"share", share},
           {"fast_only_seconds", on.fast_only().count()}};
  const double least = on.fast_only().count();
  const auto print = [&](const std::string& mode, double seconds, SlowTraffic traffic) {
    row["modes"][mode] = {{"seconds", seconds}, {"read_gb", traffic.read}, {"written_gb", traffic.written}};
    print_line(fmt::format("| {} {} | {:.0f} ({:.0f}) | {} | {:.1f} | {:.2f} | {:.2f} | {:.0f} | {:.0f} |",
                           network.name, network.batch, static_cast<double>(on.peak().count) / 1e9,
                           network.footprint_gb, mode, seconds, seconds / least,
                           row["modes"]["2LM none"]["seconds"].get<double>() / seconds, traffic.read,
                           traffic.written));
  };
  for (const auto& [name, dead] :
       {std::pair{"2LM none", DeadMemory::kept}, std::pair{"2LM M", DeadMemory::reused}}) {
    const auto cached = predict_memory_mode(on.request(share), dead);
    if (!cached) continue;
    print(name, cached->step.count(),
          {static_cast<double>(cached->misses.count) / 1e9,
           static_cast<double>(cached->written_back.count) / 1e9});
  }
  for (const char* mode : kModes) {
    const auto plan = on.plan(mode, share);
    if (plan) print(mode, plan->prediction.step.count(), slow_traffic(on.graph(), *plan));
  }
  return row;
}

/// What goes over the bus of fast memory: kernels there, and one side of every copy.
double bus_gb(const Graph& graph, const Plan& plan) {
  double bytes = 0;
  for (const Instruction& instruction : plan.instructions) {
    if (const auto* copy = std::get_if<Copy>(&instruction)) {
      for (const TensorId tensor : copy->tensors) bytes += static_cast<double>(graph[tensor].bytes.count);
    } else if (const auto* run = std::get_if<Run>(&instruction)) {
      const Kernel& kernel = graph[run->kernel];
      for (std::size_t i = 0; i < kernel.inputs.size() + kernel.outputs.size(); ++i) {
        const Operand& operand =
            i < kernel.inputs.size() ? kernel.inputs[i] : kernel.outputs[i - kernel.inputs.size()];
        if (run->tiers[i] == TierId{0}) bytes += static_cast<double>(operand.touched.count);
      }
    }
  }
  return bytes / 1e9;
}

/// 003 Fig. 3 (the most that lies in the heap), 4 (hits and dirty misses, of all lines touched) and 6 (the
/// use of fast memory's bus, of what it reads).
json cache_row(const PaperNetwork& network) {
  const Simulated on(zoo_model(network.name, network.batch), "optane-cachedarrays");
  const double share = kFastGb / network.footprint_gb;
  const double bus = on.machine().tiers[0].read.value / 1e9;
  json row{{"model", network.name}, {"batch", network.batch}};
  const auto gb = [](Bytes bytes) { return static_cast<double>(bytes.count) / 1e9; };
  Bytes made;
  for (const Tensor& tensor : on.graph().tensors) made += tensor.bytes;
  for (const auto& [name, dead, heap] :
       {std::tuple{"2LM none", DeadMemory::kept, made}, std::tuple{"2LM M", DeadMemory::reused, on.peak()}}) {
    const auto cached = predict_memory_mode(on.request(share), dead);
    if (!cached) continue;
    const double touched = gb(cached->hits) + gb(cached->misses);
    // A miss is filled from slow memory, and what is written back is read before.
    const double used =
        (touched + gb(cached->misses) + gb(cached->written_back)) / cached->step.count() / bus;
    row[name] = {{"heap_gb", gb(heap)},
                 {"hits", gb(cached->hits) / touched},
                 {"dirty_misses", gb(cached->written_back) / touched},
                 {"bus", used}};
    print_line(fmt::format("| {} {} | {} | {:.0f} | {:.1f}% | {:.1f}% | {:.1f}% |", network.name,
                           network.batch, name, gb(heap), 100 * gb(cached->hits) / touched,
                           100 * gb(cached->written_back) / touched, 100 * used));
  }
  for (const char* mode : {"ca-none", "ca-l", "ca-lm", "ca-lmp"}) {
    const auto plan = on.plan(mode, share);
    if (!plan) continue;
    const double used = bus_gb(on.graph(), *plan) / plan->prediction.step.count() / bus;
    row[mode] = {{"bus", used}};
    print_line(fmt::format("| {} {} | {} | | | | {:.1f}% |", network.name, network.batch, mode, 100 * used));
  }
  return row;
}

json small_row(const PaperNetwork& network, bool quick) {
  const Simulated on(zoo_model(network.name, network.batch), "optane-cachedarrays");
  json row{{"model", network.name}, {"batch", network.batch}};
  std::string line = fmt::format("| {} {} | {:.0f} |", network.name, network.batch,
                                 static_cast<double>(on.peak().count) / 1e9);
  const auto all_slow = on.speed("all-slow", 0.01);
  row["all_slow"] = all_slow ? json(1 / *all_slow) : json(nullptr);
  line += fmt::format(" {:.2f} |", all_slow ? 1 / *all_slow : NAN);
  for (const double share : quick ? std::vector{0.5} : std::vector{0.1, 0.2, 0.4, 0.6, 0.8, 1.0}) {
    const auto plan = on.plan("ca-lm", share);
    const double slower = plan ? plan->prediction.step / on.fast_only() : NAN;
    // What the step would take if nothing waited for a transfer (003 Fig. 7, in red).
    const double without = plan ? (plan->prediction.step - plan->prediction.exposed) / on.fast_only() : NAN;
    row["lm"][fmt::format("{:.1f}", share)] = {slower, without};
    line += fmt::format(" {:.2f} ({:.2f}) |", slower, without);
  }
  print_line(line);
  return row;
}

void run(const PaperRequest& request) {
  json details = json::object();
  std::vector<double> ratios;
  const auto asked = [&](const char* part, const PaperNetwork& network) {
    return request.asks_for(part) && request.asks_for_network(network.name);
  };
  print_head(
      "A step in each mode, DRAM as large a share of the peak as in the paper",
      "| network, batch | peak GB (paper's) | mode | seconds | over all in DRAM | speed over 2LM none | "
      "GB read from slow memory | GB written |");
  for (const PaperNetwork& network : kLarge) {
    if (!asked("large", network)) continue;
    json row = large_row(network);
    double best = 0;
    for (const char* mode : {"ca-lm", "ca-lmp"})
      if (row["modes"].contains(mode))
        best = std::max(best, row["modes"]["2LM none"]["seconds"].get<double>() /
                                  row["modes"][mode]["seconds"].get<double>());
    ratios.push_back(best / 1.4);
    details["large"].push_back(std::move(row));
    if (request.quick) break;
  }
  print_head("Memory mode's heap and cache, and the use of DRAM's bus",
             "| network, batch | mode | heap GB | hits | dirty misses | use of the bus |");
  for (const PaperNetwork& network : kLarge)
    if (asked("cache", network) && !request.quick) details["cache"].push_back(cache_row(network));
  print_head(
      "A step over one with all in DRAM: slow memory alone, and LM by its share of fast memory (in "
      "brackets without waiting for transfers)",
      "| network, batch | peak GB | slow memory alone | 10% | 20% | 40% | 60% | 80% | 100% |");
  for (const PaperNetwork& network : kSmall)
    if (asked("small", network) && !request.quick)
      details["small"].push_back(small_row(network, request.quick));
  if (request.only == "executed") details["executed"] = executed_modes(request);
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  print_result("geometric mean of the speed of the best of LM and LMP over memory mode, over 1.4",
               "at least 1", ratios.empty() ? NAN : std::exp(sum / static_cast<double>(ratios.size())),
               ratios.empty() ? json::array() : spread(ratios), std::move(details));
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) { return terrace::bench::paper_main(argc, argv, terrace::bench::run); }
