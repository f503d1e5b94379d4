// SPDX-License-Identifier: Apache-2.0
// Servers with Intel Optane persistent memory (PMM) beside DRAM: 001, 002, 003, 004.
#include "machine/presets.hpp"

#include <algorithm>

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

/// What a tier does for copies, with streaming loads and stores and as many threads as suit it.
struct Streams {
  double read, write;
};
/// Rates of one socket with six modules of each kind (002 chapter 7).
constexpr Streams kDramStreams{104, 80}, kPmmStreams{39, 13};

/// A kernel's stores are not streaming ones: they read a line before they write it.
constexpr double with_read_for_ownership(Streams tier) { return 1 / (1 / tier.read + 1 / tier.write); }

/// What all cores together write to six modules of Optane by ordinary stores, in GB/s. Both are fitted, since
/// 001 prints no figures in Fig. 3, to two facts of 001 that bind them one by one: `tiled` to Fig. 4 (a
/// convolution of 3x3x128x128 over 112x112x128x128 with 24 threads takes over twice as long with its output
/// in Optane), then `streaming` to Fig. 1 (inception4 with batch 1472 takes about five times as long in
/// Optane alone).
struct StoreRates {
  double streaming, tiled;
};
constexpr StoreRates kPmmStores{4, 3};

/// DRAM and Optane as kernels find them. `efficiency`: the share of its roofline that a kernel reaches with
/// all its operands in DRAM.
struct KernelMemory {
  Bytes dram, pmm;
  Streams dram_streams, pmm_streams;
  StoreRates stores;
  double dram_ns, pmm_ns;
  double efficiency = 1;
};

void set_memory(Machine& machine, const KernelMemory& of) {
  machine.tiers = {memory("dram", of.dram, of.efficiency * of.dram_streams.read,
                          of.efficiency * with_read_for_ownership(of.dram_streams), of.dram_ns),
                   memory("pmm", of.pmm, of.pmm_streams.read, of.stores.streaming, of.pmm_ns)};
  machine.tiers[kPmm.index].tiled_write = gb_per_second(of.stores.tiled);
  machine.compute.flops_per_second *= of.efficiency;
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

const char* const kStoreSource =
    " Kernels write by ordinary stores, which read a line first; what they write to Optane is fitted to 001 "
    "Fig. 4 (tiled) and Fig. 1 (streaming).";

/// Copies use streaming loads and stores.
void add_pair_of_links(Machine& machine, Streams dram, Streams pmm) {
  const auto link = [&](TierId from, TierId to, double rate, unsigned threads) {
    const Sharing sharing = copying(threads, machine.compute);
    return Link{from,           to, {{1_MiB, gb_per_second(rate)}}, sharing.both_ways, sharing.compute_loss,
                sharing.threads};
  };
  machine.links = {link(kDram, kPmm, std::min(dram.read, pmm.write), kWriters),
                   link(kPmm, kDram, std::min(pmm.read, dram.write), kReaders)};
}

Machine finished(Machine machine, const KernelMemory& of) {
  set_memory(machine, of);
  add_pair_of_links(machine, of.dram_streams, of.pmm_streams);
  add_prices(machine);
  machine.source += kStoreSource;
  machine.source += kLinkSource;
  return machine;
}

/// A socket with six modules of each kind, at the rates and latencies of 002 chapter 7.
Machine socket_of_six(Machine machine, Bytes dram, Bytes pmm, StoreRates stores = kPmmStores) {
  return finished(std::move(machine), {dram, pmm, kDramStreams, kPmmStreams, stores, 79, 304});
}

Machine autotm() {
  Machine machine;
  machine.source =
      "Capacities: 001 section 5.1, one socket with 6 x 32 GB DRAM and 6 x 128 GB Optane. Rates and "
      "latencies "
      "of one socket: 002 chapter 7 (Optane's for random reads). Compute: a Cascade Lake prototype of 24 "
      "cores, 64 single-precision operations a cycle at an assumed 2.4 GHz.";
  machine.compute = avx512("Xeon Cascade Lake, 24 cores", 24, 2.4);
  return socket_of_six(std::move(machine), 192_GB, 768_GB);
}

Machine cachedarrays() {
  Machine machine;
  machine.source =
      "Capacities: 003 section V, the limits it sets on one socket. Rates and latencies: 002 chapter 7, a "
      "socket with as many modules of both kinds. Compute: Xeon Platinum 8276L, 28 cores of a socket, 64 "
      "single-precision operations a cycle at an assumed 2.2 GHz. This machine, of larger modules, loses "
      "less "
      "than 001's: what kernels write to Optane is fitted to 003 section V instead (densenet264 with batch "
      "504 takes 3 to 4 times as long in Optane alone), tiled in the same ratio.";
  machine.compute = avx512("Xeon Platinum 8276L, 28 cores", 28, 2.2);
  constexpr StoreRates kStores{10.4, 10.4 * kPmmStores.tiled / kPmmStores.streaming};
  return socket_of_six(std::move(machine), 180_GB, 1300_GB, kStores);
}

Machine sentinel() {
  Machine machine;
  // 002 reports 91% of fast-only speed for Sentinel where kernels at their roofline would allow less: those
  // of TensorFlow on images of 32x32 leave copies more time.
  constexpr double kEfficiency = 0.4;
  machine.source =
      "Capacities: 002 Table 4.2. Read rates and latencies: 002 Table 8.1, local tiers of the same "
      "processor; what copies write: 002 chapter 7. Compute: Xeon Gold 6252, 24 cores, 64 single-precision "
      "operations a cycle at an assumed 2.1 GHz. Kernels reach 0.4 of their roofline, fitted to 002 section "
      "4.7.2 (Sentinel is 9% below fast memory alone with a fifth of the peak).";
  machine.compute = avx512("Xeon Gold 6252, 24 cores", 24, 2.1);
  return finished(
      std::move(machine),
      {96_GB, 756_GB, {95, kDramStreams.write}, {35, kPmmStreams.write}, kPmmStores, 90, 275, kEfficiency});
}

Machine deeptm() {
  // This machine has four modules of each kind, where 002 chapter 7 has six.
  constexpr double kModules = 4.0 / 6.0, kDramWrite = kDramStreams.write * kModules;
  // 004 section II-A: DRAM writes large buffers more than seven times as fast.
  constexpr double kPmmWrite = kDramWrite / 7;
  // 004 Fig. 1a gives the times of one page.
  constexpr Bytes kPage = 4_KiB;
  constexpr Seconds kPageRead{5.57e-6}, kPageWrite{14.49e-6};
  Machine machine;
  machine.source =
      "Capacities: 004 section IV, 4 x 32 GB DRAM and 4 x 128 GB Optane. Latencies: 004 Fig. 1a, reading a "
      "page. DRAM's rates, what Optane reads and what kernels write to it: four sixths of a socket with six "
      "modules (002 chapter 7); what copies write to Optane: a seventh of DRAM (004 section II-A). Links of "
      "a "
      "page: 004 Fig. 1a. Compute: Xeon Gold 6226R with the 20 cores that 004 names, 64 single-precision "
      "operations a cycle at an assumed 2.2 GHz.";
  machine.compute = avx512("Xeon Gold 6226R, 20 cores", 20, 2.2);
  machine = finished(std::move(machine), {128_GB,
                                          512_GB,
                                          {kDramStreams.read * kModules, kDramWrite},
                                          {kPmmStreams.read * kModules, kPmmWrite},
                                          {kPmmStores.streaming * kModules, kPmmStores.tiled * kModules},
                                          220,
                                          5570});
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
  return socket_of_six(std::move(machine), 96_GB, 1500_GB);
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
