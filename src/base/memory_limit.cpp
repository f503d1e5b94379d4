#include "base/memory_limit.hpp"

#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace terrace {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kNoLimit{std::numeric_limits<std::uint64_t>::max()};

// Returns the number behind `key` in a file of `key value` lines. Words before the key are skipped, because
// the per-node files start every line with `Node 0`.
std::optional<std::uint64_t> field(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      std::uint64_t value = 0;
      if (word == key && words >> value) return value;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? std::optional{value} : std::nullopt;  // "max" is not a number and means no limit
}

struct GroupFiles {
  const char *limit, *usage, *inactive, *active, *peak;
};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file", "active_file", "memory.peak"};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                               "total_active_file", "memory.max_usage_in_bytes"};

std::optional<Bytes> left_in_group(const fs::path& folder, const GroupFiles& files) {
  const auto limit = number(folder / files.limit), usage = number(folder / files.usage);
  if (!limit || !usage) return std::nullopt;
  const std::uint64_t cache = field(folder / "memory.stat", files.inactive).value_or(0) +
                              field(folder / "memory.stat", files.active).value_or(0);
  const std::uint64_t held = *usage - std::min(cache, *usage);
  return Bytes{*limit - std::min(held, *limit)};
}

void lower(MemoryLimit& limit, std::optional<Bytes> available, const std::string& source) {
  if (available && *available < limit.available) limit = {*available, source};
}

// Calls `visit` with the folder of every control group of this process, for each mount from its own group up
// to the root. Inside a container the path often names folders that only the host sees; those do not exist
// here.
template <class Visit>
void for_each_group(const fs::path& root, Visit visit) {
  const auto climb = [&](const fs::path& mount, fs::path group, const GroupFiles& files) {
    for (group = group.relative_path();; group = group.parent_path()) {
      visit(mount, group, files);
      if (group.empty()) return;
    }
  };
  // The lines have the form `id:controllers:path`; version 2 has id 0 and no controllers.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1), mounts = root / "sys/fs/cgroup";
    if (controllers == ",,") {
      climb(mounts, group, kVersion2);
      climb(mounts / "unified", group, kVersion2);
    }
    if (controllers.find(",memory,") != line.npos) climb(mounts / "memory", group, kVersion1);
  }
}

}  // namespace

MemoryLimit memory_limit(const fs::path& root) {
  MemoryLimit limit{kNoLimit, "nothing"};
  if (const auto kib = field(root / "proc/meminfo", "MemAvailable:")) {
    lower(limit, Bytes{*kib << 10}, "MemAvailable");
  }
  // Every group on the path may set a limit; in a container the root is the container's own group.
  for_each_group(root, [&](const fs::path& mount, const fs::path& group, const GroupFiles& files) {
    lower(limit, left_in_group(mount / group, files), (mount / group).string());
  });
  return limit;
}

Bytes memory_on_node(unsigned node, const fs::path& root) {
  const fs::path path = root / "sys/devices/system/node" / ("node" + std::to_string(node)) / "meminfo";
  const auto of = [&](const char* key) { return field(path, key).value_or(0); };
  return Bytes{(of("MemFree:") + of("Active(file):") + of("Inactive(file):")) << 10};
}

std::optional<Bytes> peak_of_group(const fs::path& root) {
  std::optional<Bytes> peak;
  for_each_group(root, [&](const fs::path& mount, const fs::path& group, const GroupFiles& files) {
    if (peak || group.empty()) return;
    if (const auto bytes = number(mount / group / files.peak)) peak = Bytes{*bytes};
  });
  return peak;
}

Bytes peak_resident(const fs::path& root) {
  return Bytes{field(root / "proc/self/status", "VmHWM:").value_or(0) << 10};
}

}  // namespace terrace
