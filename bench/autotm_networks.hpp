// The paper's conventional networks (001 Table 1) in its shares of fast memory, and models that run here.
#pragma once

#include "autotm_solve.hpp"
#include "planned_training.hpp"
#include "terrace/models.hpp"

namespace terrace::bench {

struct AutotmNetwork {
  const char* name;
  std::int64_t batch;
  /// 001 Table 3: seconds of all its solves at 8:1, 4:1 and 1:1, static and synchronous.
  const char* paper[2][3];
};

constexpr AutotmNetwork kNetworks[] = {
    {"vgg19", 2048, {{"0.40 (1)", "0.70 (2)", "0.82 (2)"}, {"2.5 (5)", "1.7 (3)", "0.94 (2)"}}},
    {"inception4", 1024, {{"37.9 (5)", "16.4 (2)", "13.7 (2)"}, {"50.3 (6)", "15.3 (2)", "16.4 (2)"}}},
    {"resnet200", 512, {{"2846 (2)", "3105 (3)", "91.9 (1)"}, {"710 (2)", "571 (2)", "79.9 (2)"}}},
    {"densenet264", 512, {{"3307 (1)", "2727 (1)", "2582 (1)"}, {"1448 (3)", "2021 (3)", "1404 (2)"}}}};
constexpr unsigned kRatios[] = {8, 4, 1};

inline const char* name_of(autotm::Formulation formulation) {
  constexpr const char* kNames[] = {"static", "sync", "async"};
  return kNames[static_cast<int>(formulation)];
}

/// Returns the paper's machine with copies slower by a factor.
inline Machine autotm_machine(double slower) {
  Machine machine = machine_preset("optane-autotm").value();
  for (Link& link : machine.links) {
    for (SizedRate& sized : link.rates) sized.rate.value /= slower;
  }
  return machine;
}

inline AutotmProblem network_problem(const AutotmNetwork& network, double slower) {
  Graph graph = build_model(network.name, {.batch = network.batch}).value();
  return {share_in_place(schedule(std::move(graph))), autotm_machine(slower)};
}

/// Returns the networks that were asked for; a quick run takes the two smallest.
inline std::vector<AutotmNetwork> networks_of(const AutotmRequest& asked) {
  std::vector<AutotmNetwork> all;
  for (const AutotmNetwork& one : kNetworks) {
    if (asked.quick && all.size() == 2) break;
    if (asked.network.empty() || asked.network == one.name) all.push_back(one);
  }
  return all;
}

inline std::vector<unsigned> ratios_of(const AutotmRequest& asked) {
  return asked.quick ? std::vector<unsigned>{4} : std::vector<unsigned>(kRatios, kRatios + 3);
}

inline json table3(const AutotmRequest& asked) {
  print_head("Static and synchronous (001 Table 3)", kColumns);
  json rows = json::array();
  for (const AutotmNetwork& network : networks_of(asked)) {
    const AutotmProblem problem = network_problem(network, 1);
    for (const auto formulation : {autotm::Formulation::fixed, autotm::Formulation::synchronous}) {
      for (const unsigned ratio : ratios_of(asked)) {
        const std::size_t column = ratio == 8 ? 0 : ratio == 4 ? 1 : 2;
        rows.push_back(solve_row(asked, problem.request(ratio), formulation,
                                 fmt::format("{} {} {}:1", network.name, name_of(formulation), ratio),
                                 network.paper[static_cast<int>(formulation)][column], Seconds{5},
                                 Seconds{5}));
      }
    }
  }
  return rows;
}

inline json async(AutotmRequest asked) {
  print_head("Asynchronous; x4: with copies four times slower", kColumns);
  asked.rounds = 1;
  json rows = json::array();
  for (const AutotmNetwork& network : networks_of(asked)) {
    for (const double slower : {1.0, 4.0}) {
      const AutotmProblem problem = network_problem(network, slower);
      for (const unsigned ratio : ratios_of(asked)) {
        rows.push_back(solve_row(asked, problem.request(ratio), autotm::Formulation::asynchronous,
                                 fmt::format("{} async{} {}:1", network.name, slower > 1 ? " x4" : "", ratio),
                                 "", Seconds{10}, Seconds{10}));
      }
    }
  }
  return rows;
}

/// Returns the paper's machine with a disk behind it, which is not addressable; its figures are those of an
/// NVMe drive with direct I/O.
inline Machine machine_with_disk() {
  Machine machine = autotm_machine(1);
  machine.name = "optane-autotm-disk";
  MachineTier disk;
  disk.name = "disk";
  disk.capacity = Bytes{4'000'000'000'000};
  disk.addressable = false;
  disk.read = {3.1e9};
  disk.write = {2.1e9};
  disk.latency = Seconds{1e-4};
  disk.granularity = Bytes{4096};
  machine.tiers.push_back(disk);
  for (const std::uint32_t tier : {0U, 1U}) {
    machine.links.push_back({{tier}, {2}, {{Bytes{1 << 20}, disk.write}}});
    machine.links.push_back({{2}, {tier}, {{Bytes{1 << 20}, disk.read}}});
  }
  return machine;
}

/// Two machines of three tiers, of which the second holds half of the peak: local and remote DRAM and Optane,
/// all addressable; and DRAM, Optane and a disk.
inline json three(const AutotmRequest& asked) {
  print_head("Three tiers: optane-4tier without its fourth, and optane-autotm with a disk", kColumns);
  json rows = json::array();
  const auto add = [&](const AutotmProblem& problem, const AutotmNetwork& network, const char* third,
                       autotm::Formulation formulation) {
    for (const unsigned ratio : ratios_of(asked)) {
      const std::string label =
          fmt::format("{} {} {} {}:1", network.name, third, name_of(formulation), ratio);
      try {
        rows.push_back(
            solve_row(asked, problem.three_tiers(ratio), formulation, label, "", Seconds{5}, Seconds{5}));
      } catch (const ResultError& error) {
        rows.push_back({{"row", label}, {"refused", error.what()}});
        print_line(fmt::format("| {} | none: {} | | | | | | |", label, error.what()));
      }
    }
  };
  for (const AutotmNetwork& network : networks_of(asked)) {
    Graph graph = build_model(network.name, {.batch = network.batch}).value();
    graph = share_in_place(schedule(std::move(graph)));
    const AutotmProblem memory(graph, machine_preset("optane-4tier").value());
    add(memory, network, "pmm", autotm::Formulation::fixed);
    add(memory, network, "pmm", autotm::Formulation::synchronous);
    add({graph, machine_with_disk()}, network, "disk", autotm::Formulation::synchronous);
  }
  return rows;
}

/// Kernels are measured on this computer with slower memory emulated. Such profiles are noisy, and kernels
/// are not always slower with less fast memory.
inline json measured(const AutotmRequest& asked) {
  print_head("Profiles measured here, slower memory emulated", kColumns);
  json rows = json::array();
  const std::pair<const char*, int> models[] = {{"mobilenet", 8}, {"resnet50", 8}, {"lstm", 20}};
  for (const auto& [model, batch] : models) {
    if (asked.quick && !rows.empty()) break;
    if (!asked.network.empty() && asked.network != model) continue;
    const json task{{"model", model},
                    {"batch", batch},
                    {"sequence", nullptr},
                    {"threads", 2},
                    {"slow", "emulated:16GiB,read=6GB/s,write=3GB/s,latency=300ns"}};
    const Graph graph = graph_of(task);
    const Workload workload = prepare(workload_request(task, graph)).value();
    const Profile profile = profile_of(workload, budget_of(workload, "20%").value()).value();
    const AutotmProblem problem(workload.graph(), workload.machine, profile);
    for (const auto formulation :
         {autotm::Formulation::fixed, autotm::Formulation::synchronous, autotm::Formulation::asynchronous}) {
      rows.push_back(solve_row(asked, problem.request(4), formulation,
                               fmt::format("{} {} {} 4:1", model, batch, name_of(formulation)), "",
                               Seconds{5}, Seconds{5}));
    }
  }
  return rows;
}

}  // namespace terrace::bench
