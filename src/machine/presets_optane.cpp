// SPDX-License-Identifier: Apache-2.0
// Servers with Intel Optane persistent memory (PMM) beside DRAM: 001, 002, 003, 004.
#include "machine/presets.hpp"

namespace terrace::presets {
namespace {

using namespace literals;

constexpr TierId kDram{0}, kPmm{1};

/// Each core has two fused multiply-add units of 16 lanes.
constexpr double kAvx512FlopsPerCycle = 2 * 16 * 2;

/// The compute of one socket with one thread on each core.
Compute avx512(const char* name, unsigned cores, double gigahertz) {
  return {name, cores, cores * kAvx512FlopsPerCycle * gigahertz * 1e9};
}

MachineTier memory(const char* name, Bytes capacity, double read, double write, double latency_ns) {
  MachineTier tier;
  tier.name = name;
  tier.capacity = capacity;
  tier.read = gb_per_second(read);
  tier.write = gb_per_second(write);
  tier.latency = Seconds{latency_ns * 1e-9};
  return tier;
}

/// Sets the prices of the cheapest modules, in dollars per gigabyte (001 Table 2).
void add_prices(Machine& machine) {
  for (MachineTier& tier : machine.tiers) tier.price = tier.name.starts_with("dram") ? 16.61 : 7.85;
}

/// A few threads write at the full rate, while reading takes more (001 section 2.2, 003 section V). Kernels
/// lose as many cores, which is why 001 section 7 found that asynchronous copies gain little. Both directions
/// load the same modules.
constexpr unsigned kWriters = 4, kReaders = 8;
constexpr double kBothWays = 0.5;

Sharing copying(unsigned threads, const Compute& compute) {
  return {kBothWays, static_cast<double>(threads) / compute.threads, threads};
}

const char* const kLinkSource =
    " Links: the slower of reading the source and writing the destination (001 section 2.2: copies are "
    "limited "
    "by what Optane writes; its Fig. 3 prints no figures). Assumed: 4 threads copy to Optane and 8 from it, "
    "their cores are lost to kernels, and two directions at once have half each. Prices: 001 Table 2.";

void add_pair_of_links(Machine& machine) {
  machine.links = {copy_link(machine, kDram, kPmm, copying(kWriters, machine.compute)),
                   copy_link(machine, kPmm, kDram, copying(kReaders, machine.compute))};
}

Machine finished(Machine machine) {
  add_pair_of_links(machine);
  add_prices(machine);
  machine.source += kLinkSource;
  return machine;
}

Machine autotm() {
  Machine machine;
  machine.source =
      "Capacities: 001 section 5.1, one socket with 6 x 32 GB DRAM and 6 x 128 GB Optane. Rates and "
      "latencies "
      "of one socket: 002 chapter 7 (Optane's for random reads). Compute: a Cascade Lake prototype of 24 "
      "cores, 64 single-precision operations a cycle at an assumed 2.4 GHz.";
  machine.compute = avx512("Xeon Cascade Lake, 24 cores", 24, 2.4);
  machine.tiers = {memory("dram", 192_GB, 104, 80, 79), memory("pmm", 768_GB, 39, 13, 304)};
  return finished(std::move(machine));
}

Machine cachedarrays() {
  Machine machine;
  machine.source =
      "Capacities: 003 section V, the limits it sets on one socket. Rates and latencies: 002 chapter 7, a "
      "socket with as many modules of both kinds. Compute: Xeon Platinum 8276L, 28 cores of a socket, 64 "
      "single-precision operations a cycle at an assumed 2.2 GHz.";
  machine.compute = avx512("Xeon Platinum 8276L, 28 cores", 28, 2.2);
  machine.tiers = {memory("dram", 180_GB, 104, 80, 79), memory("pmm", 1300_GB, 39, 13, 304)};
  return finished(std::move(machine));
}

Machine sentinel() {
  Machine machine;
  machine.source =
      "Capacities: 002 Table 4.2. Read rates and latencies: 002 Table 8.1, local tiers of the same "
      "processor; "
      "write rates: 002 chapter 7. Compute: Xeon Gold 6252, 24 cores, 64 single-precision operations a cycle "
      "at an assumed 2.1 GHz.";
  machine.compute = avx512("Xeon Gold 6252, 24 cores", 24, 2.1);
  machine.tiers = {memory("dram", 96_GB, 95, 80, 90), memory("pmm", 756_GB, 35, 13, 275)};
  return finished(std::move(machine));
}

Machine deeptm() {
  // This machine has four modules of each kind, where 002 chapter 7 has six.
  constexpr double kModules = 4.0 / 6.0, kDramWrite = 80 * kModules;
  // 004 section II-A: DRAM writes large buffers more than seven times as fast.
  constexpr double kPmmWrite = kDramWrite / 7;
  // 004 Fig. 1a gives the times of one page.
  constexpr Bytes kPage = 4_KiB;
  constexpr Seconds kPageRead{5.57e-6}, kPageWrite{14.49e-6};
  Machine machine;
  machine.source =
      "Capacities: 004 section IV, 4 x 32 GB DRAM and 4 x 128 GB Optane. Latencies: 004 Fig. 1a, reading a "
      "page. DRAM's rates and what Optane reads: four sixths of 002 chapter 7, which has six modules; what "
      "Optane writes: a seventh of DRAM (004 section II-A). Links of a page: 004 Fig. 1a. Compute: Xeon Gold "
      "6226R with the 20 cores that 004 names, 64 single-precision operations a cycle at an assumed 2.2 GHz.";
  machine.compute = avx512("Xeon Gold 6226R, 20 cores", 20, 2.2);
  machine.tiers = {memory("dram", 128_GB, 104 * kModules, kDramWrite, 220),
                   memory("pmm", 512_GB, 39 * kModules, kPmmWrite, 5570)};
  machine = finished(std::move(machine));
  for (Link& link : machine.links) {
    // Only large buffers reach the full rate (004 Fig. 1b).
    link.rates[0].size = 1_GiB;
    link.rates.insert(link.rates.begin(), {kPage, kPage / (link.to == kPmm ? kPageWrite : kPageRead)});
  }
  return machine;
}

Machine four_tiers() {
  Machine machine;
  machine.source =
      "Capacities, rates and latencies: 002 Table 8.1, the Optane-based system seen from one socket; what "
      "local Optane writes: 002 chapter 7. Compute: Xeon Gold 6252, 24 cores of that socket, 64 "
      "single-precision operations a cycle at an assumed 2.1 GHz.";
  machine.compute = avx512("Xeon Gold 6252, 24 cores", 24, 2.1);
  machine.tiers = {memory("dram", 96_GB, 95, 95, 90), memory("dram-remote", 96_GB, 35, 35, 145),
                   memory("pmm", 756_GB, 35, 13, 275), memory("pmm-remote", 756_GB, 1, 1, 340)};
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      const unsigned threads = to >= 2 ? kWriters : kReaders;
      machine.links.push_back(
          copy_link(machine, TierId{from}, TierId{to}, copying(threads, machine.compute)));
    }
  }
  add_prices(machine);
  machine.source += kLinkSource;
  return machine;
}

/// The same with two writers of memory beside the program on every tier.
Machine four_loaded_tiers() {
  Machine machine = four_tiers();
  constexpr double kLoadedNs[] = {198, 315, 825, 1010};
  for (std::size_t i = 0; i < machine.tiers.size(); ++i)
    machine.tiers[i].latency = Seconds{kLoadedNs[i] * 1e-9};
  machine.source =
      "Latencies: 002 Table 8.1, the emulated system, which memhog loads. The rest as optane-4tier: " +
      machine.source;
  return machine;
}

Machine hmann() {
  Machine machine;
  machine.source =
      "Capacities: 002 section 3.4.1, DDR4 of 96 GB and Optane of 1.5 TB. It measures 183 and 421 ns for a "
      "distance in either (section 3.4.3), which vector search takes from there. Rates and latencies of one "
      "socket: 002 chapter 7 (Optane's for random reads). Compute: Xeon Gold 6252, 24 cores at 2.3 GHz, 64 "
      "single-precision operations a cycle.";
  machine.compute = avx512("Xeon Gold 6252, 24 cores", 24, 2.3);
  machine.tiers = {memory("dram", 96_GB, 104, 80, 79), memory("pmm", 1500_GB, 39, 13, 304)};
  return finished(std::move(machine));
}

}  // namespace

std::vector<Preset> optane() {
  return {
      {"optane-autotm", "DRAM 192 GB and Optane 768 GB on one socket (AutoTM)", autotm},
      {"optane-cachedarrays", "DRAM 180 GB and Optane 1300 GB on one socket (CachedArrays)", cachedarrays},
      {"optane-sentinel", "DRAM 96 GB and Optane 756 GB (Sentinel)", sentinel},
      {"optane-deeptm", "DRAM 128 GB and Optane 512 GB, slow for single pages (DeepTM)", deeptm},
      {"optane-hmann", "DRAM 96 GB and Optane 1.5 TB, for vector search (HM-ANN)", hmann},
      {"optane-4tier", "DRAM and Optane, local and remote: four tiers (HM-Keeper)", four_tiers},
      {"optane-4tier-loaded", "The same while other programs load every tier (HM-Keeper)",
       four_loaded_tiers}};
}

}  // namespace terrace::presets
