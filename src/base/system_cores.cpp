#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

#include "base/kernel_list.hpp"
#include "base/system.hpp"

namespace terrace {
namespace {

namespace fs = std::filesystem;

unsigned allowed_by_affinity() {
  std::array<cpu_set_t, 16> sets{};  // a single cpu_set_t ends at 1024 cores
  if (sched_getaffinity(0, sizeof sets, sets.data()) != 0) return 0;
  return static_cast<unsigned>(CPU_COUNT_S(sizeof sets, sets.data()));
}

// The file holds time and period: `max 100000` or `150000 100000`.
std::optional<double> quota_v2(const fs::path& folder) {
  std::istringstream in(first_line(folder / "cpu.max"));
  double time = 0, period = 0;
  if (!(in >> time >> period) || period <= 0) return std::nullopt;
  return time / period;
}

std::optional<double> quota_v1(const fs::path& folder) {
  std::istringstream in(first_line(folder / "cpu.cfs_quota_us") + " " +
                        first_line(folder / "cpu.cfs_period_us"));
  double time = 0, period = 0;
  if (!(in >> time >> period) || time <= 0 || period <= 0) return std::nullopt;
  return time / period;
}

// Returns the least quota of a group and of all groups that contain it. In a container the group's path may
// name a folder that only the host sees; the top of the mount then holds the container's own limits.
template <class Quota>
std::optional<double> least_quota(const fs::path& mount, const std::string& group, Quota quota_of) {
  std::optional<double> least;
  fs::path folder = mount;
  const auto take = [&] {
    if (const auto quota = quota_of(folder)) least = std::min(least.value_or(*quota), *quota);
  };
  take();
  for (const fs::path& part : fs::path(group).relative_path()) {
    folder /= part;
    take();
  }
  return least;
}

bool lists_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

std::optional<double> quota_of_groups(const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  std::optional<double> quota;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    std::istringstream parts(line);
    std::string number, controllers, group;
    std::getline(parts, number, ':');
    std::getline(parts, controllers, ':');
    std::getline(parts, group);
    if (controllers.empty()) {
      quota = smaller(quota, least_quota(mount, group, quota_v2));
      quota = smaller(quota, least_quota(mount / "unified", group, quota_v2));
    } else if (lists_cpu(controllers)) {
      // Some systems mount `cpu,cpuacct` under the joint name, some under each name.
      for (const std::string& name : {controllers, std::string("cpu")}) {
        quota = smaller(quota, least_quota(mount / name, group, quota_v1));
      }
    }
  }
  return quota;
}

}  // namespace

unsigned Cores::usable() const {
  unsigned count = std::max(1U, allowed == 0 ? online : std::min(online, allowed));
  if (quota && *quota < count) count = std::max(1U, static_cast<unsigned>(std::floor(*quota)));
  return count;
}

Cores probe_cores(const fs::path& root) {
  return {count_kernel_list(first_line(root / "sys/devices/system/cpu/online")), allowed_by_affinity(),
          quota_of_groups(root)};
}

}  // namespace terrace
