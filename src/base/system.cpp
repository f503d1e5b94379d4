#include "base/system.hpp"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <sstream>

#include "base/kernel_list.hpp"

namespace terrace {
namespace {

namespace fs = std::filesystem;

// Returns the number behind `key:` in a file in the format of /proc/meminfo, or 0 where there is none.
std::uint64_t field(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(key + ":");
    if (at == std::string::npos || (at > 0 && line[at - 1] != ' ')) continue;
    std::uint64_t number = 0;
    std::istringstream(line.substr(at + key.size() + 1)) >> number;
    return number;
  }
  return 0;
}

// Returns the names in `folder` that are `prefix` followed by a number: node0, dax1.0, nvidia3.
std::vector<std::string> numbered_entries(const fs::path& folder, const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    const bool numbered = name.starts_with(prefix) && name.size() > prefix.size() &&
                          std::isdigit(static_cast<unsigned char>(name[prefix.size()])) != 0;
    if (numbered) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the word in brackets of a line such as `always [madvise] never`.
std::string chosen_word(const std::string& line) {
  const auto open = line.find('[');
  const auto close = line.find(']');
  if (open == std::string::npos || close == std::string::npos) return {};
  return line.substr(open + 1, close - open - 1);
}

bool has_option(const std::string& options, const std::string& option) {
  std::istringstream in(options);
  for (std::string word; std::getline(in, word, ',');) {
    if (word == option) return true;
  }
  return false;
}

// CAP_IPC_LOCK lifts the limit on locked memory. Reading this one bit does not justify a dependency on
// libcap.
bool may_lock_any_amount() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[0].effective >> CAP_IPC_LOCK & 1U) != 0;
}

}  // namespace

MemoryAmounts probe_memory(const fs::path& root) {
  const fs::path meminfo = root / "proc/meminfo";
  return {Bytes{field(meminfo, "MemTotal") * 1024}, Bytes{field(meminfo, "MemAvailable") * 1024}};
}

std::vector<NumaNode> probe_numa_nodes(const fs::path& root) {
  const fs::path folder = root / "sys/devices/system/node";
  std::vector<NumaNode> nodes;
  for (const std::string& name : numbered_entries(folder, "node")) {
    nodes.push_back({static_cast<unsigned>(std::stoul(name.substr(4))),
                     Bytes{field(folder / name / "meminfo", "MemTotal") * 1024},
                     count_kernel_list(first_line(folder / name / "cpulist"))});
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
  return nodes;
}

HugePages probe_huge_pages(const fs::path& root) {
  const fs::path meminfo = root / "proc/meminfo";
  HugePages pages;
  pages.transparent = chosen_word(first_line(root / "sys/kernel/mm/transparent_hugepage/enabled"));
  pages.page = Bytes{field(meminfo, "Hugepagesize") * 1024};
  pages.pool_total = field(meminfo, "HugePages_Total");
  pages.pool_free = field(meminfo, "HugePages_Free");
  return pages;
}

DaxPlaces probe_dax(const fs::path& root) {
  DaxPlaces places;
  for (const std::string& name : numbered_entries(root / "dev", "dax")) {
    places.devices.push_back("/dev/" + name);
  }
  std::ifstream mounts(root / "proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, folder, type, options;
    words >> device >> folder >> type >> options;
    if (has_option(options, "dax") || has_option(options, "dax=always")) places.mounts.push_back(folder);
  }
  return places;
}

std::vector<std::string> probe_gpus(const fs::path& root) {
  std::vector<std::string> gpus;
  for (const std::string& name : numbered_entries(root / "dev", "nvidia")) gpus.push_back("/dev/" + name);
  return gpus;
}

std::optional<Bytes> probe_memlock() {
  rlimit limit{};
  if (may_lock_any_amount() || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return Bytes{limit.rlim_cur};
}

bool built_with_numa() {
#ifdef TERRACE_HAS_NUMA
  return true;
#else
  return false;
#endif
}

bool built_with_kernels() {
#ifdef TERRACE_HAS_CPU_KERNELS
  return true;
#else
  return false;
#endif
}

}  // namespace terrace
