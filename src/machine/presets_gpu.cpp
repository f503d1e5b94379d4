// SPDX-License-Identifier: Apache-2.0
// GPUs whose slow tier is the host's memory: 001 section 7, 002 Table 4.2, and one that was measured.
#include "machine/presets.hpp"

namespace terrace::presets {
namespace {

using namespace literals;

constexpr TierId kDevice{0}, kHost{1};
/// Starting a copy and its latency over PCIe take about this long.
constexpr Seconds kCopyOverhead{10e-6};
/// cudaMalloc aligns to this.
constexpr Bytes kDeviceGranularity{256};
/// Direct reads and writes of a disk work on such blocks, and each takes about this long on top.
constexpr Bytes kDiskGranularity{4096};
constexpr Seconds kDiskOverhead{100e-6};

/// Kernels can use only the device's memory.
std::vector<MachineTier> tiers(Bytes device, double device_rate, Bytes host, double host_rate) {
  MachineTier fast, slow;
  fast.name = "device";
  fast.capacity = device;
  fast.read = fast.write = gb_per_second(device_rate);
  fast.latency = Seconds{500e-9};
  slow.name = "host";
  slow.capacity = host;
  slow.addressable = false;
  slow.read = slow.write = gb_per_second(host_rate);
  slow.latency = Seconds{1e-6};
  fast.granularity = slow.granularity = kDeviceGranularity;
  return {std::move(fast), std::move(slow)};
}

/// The copy engines slow kernels only by their share of the device's memory bandwidth.
void add_links(Machine& machine, const std::vector<SizedRate>& in, const std::vector<SizedRate>& out,
               double both_ways) {
  const auto link = [&](TierId from, TierId to, const std::vector<SizedRate>& rates) {
    return Link{from, to, rates, both_ways, rates.back().rate.value / machine[kDevice].read.value, 1};
  };
  machine.links = {link(kHost, kDevice, in), link(kDevice, kHost, out)};
}

const char* const kLatencySource =
    " Assumed: 10 us for every copy on top, latencies of 500 ns and 1 us, both directions at once at full "
    "rate; "
    "kernels lose the share of the device's memory that a copy takes.";

Machine v100() {
  Machine machine;
  machine.source =
      "Capacities and interconnect: 002 Table 4.2. Memory and compute: NVIDIA's figures for the V100 with "
      "PCIe, "
      "HBM2 at 900 GB/s and 14 TFLOP/s in single precision. Host: four channels, 51 GB/s. Link: 12 of the "
      "15.75 "
      "GB/s of PCIe 3.0 x16, what copies from pinned memory commonly reach.";
  machine.source += kLatencySource;
  machine.compute = {"NVIDIA V100", 1, 14e12};
  machine.tiers = tiers(16_GB, 900, 128_GB, 51);
  const auto rates = rates_with_overhead(gb_per_second(12), kCopyOverhead);
  add_links(machine, rates, rates, 1);
  return machine;
}

Machine rtx2080ti() {
  Machine machine;
  machine.source =
      "Capacities, 616 GB/s of the device and 16 GB/s of PCIe: 001 section 7. Compute: 4352 lanes, two "
      "operations a cycle at 1.545 GHz. Host: Core i9-9900X, four channels of DDR4-2666.";
  machine.source += kLatencySource;
  machine.compute = {"NVIDIA RTX 2080 Ti", 1, 4352 * 2 * 1.545e9};
  machine.tiers = tiers(11_GB, 616, 64_GB, 85);
  const auto rates = rates_with_overhead(gb_per_second(16), kCopyOverhead);
  add_links(machine, rates, rates, 1);
  return machine;
}

Machine h200() {
  Machine machine;
  machine.source =
      "Measured in November 2026 with CUDA 13.0: capacities, copies within the device (read plus write), and "
      "copies of pinned memory by size, alone and in both directions at once (46 of 54 GB/s). Compute: "
      "NVIDIA's "
      "figure, 67 TFLOP/s in single precision. Host: assumed 200 GB/s. Assumed: latencies of 500 ns and 1 "
      "us; "
      "kernels lose the share of the device's memory that a copy takes.";
  machine.compute = {"NVIDIA H200", 1, 67e12};
  machine.tiers = tiers(139_GiB, 4250, 125_GB, 200);
  const auto rates = [](double largest) -> std::vector<SizedRate> {
    return {{64_KiB, gb_per_second(17)}, {1_MiB, gb_per_second(47)}, {16_MiB, gb_per_second(largest)}};
  };
  add_links(machine, rates(54), rates(54), 46.0 / 54.0);
  return machine;
}

/// A disk that only the host reaches: the device's bytes go there by way of pinned memory.
Machine h200_disk() {
  constexpr TierId kDisk{2};
  Machine machine = h200();
  machine.source +=
      " Disk: direct reads at 3.1 GB/s and writes at 1.8, measured on the same computer; 1 TB is assumed.";
  MachineTier disk;
  disk.name = "disk";
  disk.capacity = 1000_GB;
  disk.addressable = false;
  disk.read = gb_per_second(3.1);
  disk.write = gb_per_second(1.8);
  disk.latency = Seconds{100e-6};
  disk.granularity = kDiskGranularity;
  machine.tiers.push_back(std::move(disk));
  machine.links.push_back({kHost, kDisk, rates_with_overhead(gb_per_second(1.8), kDiskOverhead)});
  machine.links.push_back({kDisk, kHost, rates_with_overhead(gb_per_second(3.1), kDiskOverhead)});
  return machine;
}

}  // namespace

std::vector<Preset> gpu() {
  return {{"v100-pcie3", "V100 with 16 GB over PCIe 3.0 to a host of 128 GB (Sentinel)", v100},
          {"rtx2080ti", "RTX 2080 Ti with 11 GB over PCIe 3.0 to a host of 64 GB (AutoTM)", rtx2080ti},
          {"h200-pcie5", "H200 with 139 GiB over PCIe 5.0 to a host of 125 GB (measured)", h200},
          {"h200-pcie5-disk", "the same with a disk of 1 TB behind the host's memory", h200_disk}};
}

}  // namespace terrace::presets
