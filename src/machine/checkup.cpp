// SPDX-License-Identifier: Apache-2.0
#include "machine/checkup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>

namespace terrace {
namespace {

using namespace literals;

// The sample covers a few dozen requests and takes about a second on an ordinary disk.
constexpr Bytes kDiskSample = 256_MiB;
constexpr Seconds kDiskPatience{2};
// A file tier registers about this much memory with the kernel for its requests in flight.
constexpr Bytes kMemlockWanted = 256_MiB;

Check ok(std::string name, std::string found) {
  return {std::move(name), CheckStatus::ok, std::move(found), {}};
}
Check limited(std::string name, std::string found, std::string advice) {
  return {std::move(name), CheckStatus::limited, std::move(found), std::move(advice)};
}
Check missing(std::string name, std::string found, std::string advice) {
  return {std::move(name), CheckStatus::missing, std::move(found), std::move(advice)};
}

std::string count(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

Check check_cores(const Cores& cores) {
  const unsigned usable = cores.usable();
  if (usable >= cores.online) return ok("cores", count(usable, "core"));
  const std::string found = fmt::format("{} of {}", usable, count(cores.online, "core"));
  if (cores.quota && *cores.quota < cores.allowed) {
    return limited("cores",
                   fmt::format("{}: the control group gives {:.2f} cores of time", found, *cores.quota),
                   "raise the group's CPU quota (docker run --cpus, systemd CPUQuota=)");
  }
  return limited("cores", found + " by the affinity of this process",
                 "start it with a wider taskset or cpuset");
}

Check check_instructions(const InstructionSets& sets) {
  std::vector<std::string_view> names;
  if (sets.sse42) names.emplace_back("sse4.2");
  if (sets.avx2) names.emplace_back("avx2");
  if (sets.avx512f) names.emplace_back("avx512f");
  if (sets.avx512_bf16) names.emplace_back("avx512_bf16");
  if (sets.amx_works) names.emplace_back("amx");
  const std::string found =
      names.empty() ? "none of sse4.2, avx2, avx512f" : fmt::format("{}", fmt::join(names, " "));
  if (sets.amx_advertised && !sets.amx_works) {
    return limited(
        "instructions", found + "; amx is advertised but faults when used",
        "set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 for programs that would try it, or have the virtual "
        "machine's host enable it");
  }
  if (!sets.avx2) {
    return limited("instructions", found, "nothing to do: copies take the portable path, which is slower");
  }
  return ok("instructions", found);
}

Check check_memory(const Computer& computer) {
  const auto& [total, available] = computer.memory;
  const std::string found = fmt::format("{}, {} available", readable(total), readable(available));
  // Without a control group the source is the kernel's own figure, which changes between two readings.
  if (!computer.usable_memory.source.starts_with('/')) return ok("memory", found);
  return limited("memory",
                 fmt::format("{}, but the control group at {} leaves {}", found,
                             computer.usable_memory.source, readable(computer.usable_memory.available)),
                 "raise the group's memory limit, or keep the memory tiers within it");
}

Check check_numa(const Computer& computer) {
  std::vector<std::string> nodes;
  for (const NumaNode& node : computer.nodes) {
    nodes.push_back(
        fmt::format("{}: {} with {}", node.node, readable(node.memory), count(node.cores, "core")));
  }
  if (nodes.empty()) {
    return missing("numa", "the kernel shows no nodes",
                   "use dram tiers; numa tiers need a kernel with CONFIG_NUMA");
  }
  const std::string found = fmt::format("{} ({})", count(nodes.size(), "node"), fmt::join(nodes, ", "));
  if (!computer.numa_built) {
    return limited("numa", found + ", but this build has no libnuma", "install libnuma-dev and build again");
  }
  return ok("numa", found);
}

Check check_huge_pages(const HugePages& pages) {
  std::string found = pages.transparent.empty() ? std::string("no transparent huge pages")
                                                : "transparent: " + pages.transparent;
  found += fmt::format("; pool: {} of {} pages of {} free", pages.pool_free, pages.pool_total,
                       readable(pages.page));
  if (pages.transparent == "always" || pages.transparent == "madvise") return ok("huge_pages", found);
  if (pages.pool_free > 0) {
    return limited("huge_pages", found,
                   "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
  }
  return missing("huge_pages", found, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
}

Check check_uring(const Uring& uring) {
  if (!uring.built) {
    return missing("io_uring", "this build has no liburing",
                   "install liburing-dev and build again; until then file tiers use a pool of threads");
  }
  if (uring.error == 0) return ok("io_uring", "a ring was set up and answered");
  const std::string found = fmt::format("refused: {}", std::strerror(uring.error));
  const std::string pool = "; until then file tiers use a pool of threads";
  if (uring.error == EPERM) {
    return missing(
        "io_uring", found,
        "set sysctl kernel.io_uring_disabled=0, and in a container allow it in the seccomp profile" + pool);
  }
  if (uring.error == ENOSYS) return missing("io_uring", found, "use Linux 5.6 or newer" + pool);
  return missing("io_uring", found,
                 "raise the limits on locked memory (ulimit -l) and open files (ulimit -n)" + pool);
}

Check check_memlock(const std::optional<Bytes>& limit) {
  if (!limit) return ok("memlock", "unlimited");
  if (*limit >= kMemlockWanted) return ok("memlock", readable(*limit));
  return limited(
      "memlock", readable(*limit),
      fmt::format("raise it to {} (ulimit -l, or memlock in /etc/security/limits.conf) so that disk "
                  "requests can use registered buffers",
                  readable(kMemlockWanted)));
}

Check check_direct_io(const Computer& computer) {
  if (!computer.storage) {
    return missing("direct_io", computer.storage.error().message, "pass --path with a writable folder");
  }
  const std::string& folder = computer.folder.native();
  const StorageFeatures& storage = *computer.storage;
  if (storage.direct_error != 0) {
    return missing("direct_io", fmt::format("refused at {}: {}", folder, std::strerror(storage.direct_error)),
                   "put file tiers on ext4, xfs or btrfs on a disk, or add ',buffered' to the tier's spec");
  }
  if (storage.in_memory) {
    return limited(
        "direct_io", fmt::format("{} is memory (tmpfs), not a disk", folder),
        "pass --path with a folder on a disk: a file tier here would use up the memory it should save");
  }
  return ok("direct_io", fmt::format("works at {}, {} free", folder, readable(storage.free_space)));
}

Check check_disk(const Computer& computer) {
  if (!computer.disk) {
    return missing("disk", computer.disk.error().message,
                   "pass --path with a folder on a disk with free space");
  }
  const DiskSpeed& speed = *computer.disk;
  std::string found = fmt::format("{} read, {} write over {} at {}", readable(speed.read),
                                  readable(speed.write), readable(speed.amount), computer.folder.native());
  if (computer.storage && computer.storage->in_memory) {
    return limited("disk", found, "this is the speed of memory: pass --path with a folder on a disk");
  }
  return ok("disk", std::move(found));
}

Check check_dax(const DaxPlaces& dax) {
  if (dax.devices.empty() && dax.mounts.empty()) {
    return missing(
        "dax", "no persistent or CXL memory",
        "nothing, unless this computer has some: then mount it with -o dax and use dax:PATH tiers");
  }
  std::vector<std::string> places = dax.mounts;
  places.insert(places.end(), dax.devices.begin(), dax.devices.end());
  const std::string found = fmt::format("{}", fmt::join(places, ", "));
  if (!dax.mounts.empty()) return ok("dax", found);
  return limited("dax", found,
                 "device only: make a file system on it (ndctl create-namespace -m fsdax), mount it -o dax");
}

Check check_map_sync(const Computer& computer) {
  const std::string& folder = computer.folder.native();
  if (computer.storage && computer.storage->map_sync) {
    return ok("map_sync", "durable mappings at " + folder);
  }
  return missing(
      "map_sync", "not offered at " + folder,
      "nothing, unless this is persistent memory: then mount it with -o dax; dax tiers elsewhere are "
      "mapped plainly");
}

Check check_kernels(const Computer& computer) {
  if (!computer.kernels_built) {
    return missing("kernels", "this build has no oneDNN",
                   "install libdnnl-dev and build again; until then networks cannot be trained");
  }
  const InstructionSets& sets = computer.instructions;
  return ok("kernels",
            sets.amx_advertised && !sets.amx_works ? "oneDNN, kept from AMX, which faults here" : "oneDNN");
}

Check check_gpu(const Computer& computer) {
  if (computer.cuda) {
    std::vector<std::string> gpus;
    for (const Gpu& gpu : computer.cuda->gpus) {
      gpus.push_back(fmt::format("{}: {} with {}{}", gpu.number, gpu.name, readable(gpu.memory),
                                 gpu.waits_for_flags ? "" : " (the host waits for disks itself)"));
    }
    return ok("gpu",
              fmt::format("{}; the driver knows CUDA {}", fmt::join(gpus, ", "), computer.cuda->driver));
  }
  // The sentence ends in what to do.
  const std::string& sentence = computer.cuda.error().message;
  const std::size_t colon = std::min(sentence.rfind(": "), sentence.size());
  std::string found = sentence.substr(0, colon);
  found += computer.gpus.empty() ? "; no NVIDIA device is visible"
                                 : fmt::format("; {} is not used", fmt::join(computer.gpus, ", "));
  return missing("gpu", found,
                 colon < sentence.size() ? sentence.substr(colon + 2) : "see what nvidia-smi says");
}

}  // namespace

std::string_view to_string(CheckStatus status) {
  switch (status) {
    case CheckStatus::ok:
      return "ok";
    case CheckStatus::limited:
      return "limited";
    case CheckStatus::missing:
      return "missing";
  }
  return {};
}

Computer look_at_computer(const std::filesystem::path& folder, const Progress& progress) {
  Computer computer;
  computer.cores = probe_cores();
  computer.instructions = probe_instruction_sets();
  computer.memory = probe_memory();
  computer.usable_memory = memory_limit();
  computer.nodes = probe_numa_nodes();
  computer.numa_built = built_with_numa();
  computer.kernels_built = built_with_kernels();
  computer.huge_pages = probe_huge_pages();
  computer.uring = probe_uring();
  computer.memlock = probe_memlock();
  computer.folder = folder;
  computer.storage = probe_storage(folder);
  computer.disk = measure_disk(folder, kDiskSample, kDiskPatience, progress);
  computer.dax = probe_dax();
  computer.gpus = probe_gpus();
  computer.cuda = probe_cuda();
  return computer;
}

std::vector<Check> check_up(const Computer& computer) {
  return {check_cores(computer.cores),
          check_instructions(computer.instructions),
          check_memory(computer),
          check_numa(computer),
          check_huge_pages(computer.huge_pages),
          check_uring(computer.uring),
          check_memlock(computer.memlock),
          check_direct_io(computer),
          check_disk(computer),
          check_dax(computer.dax),
          check_map_sync(computer),
          check_kernels(computer),
          check_gpu(computer)};
}

}  // namespace terrace
