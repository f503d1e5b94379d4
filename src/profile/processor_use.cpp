// SPDX-License-Identifier: Apache-2.0
#include "profile/processor_use.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <sstream>

#include "base/kernel_list.hpp"

namespace terrace {
namespace {

/// Less than this many cores' worth is the usual noise, and what the kernel does for our own transfers.
constexpr double kUsual = 0.3;

/// `cpu user nice system idle iowait irq softirq steal ...`, in ticks.
std::optional<Seconds> all_use(const std::filesystem::path& root) {
  std::istringstream in(first_line(root / "proc/stat"));
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
  in >> word >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen;
  if (!in || word != "cpu") return std::nullopt;
  return Seconds{(user + nice + system + interrupts + soft + stolen) /
                 static_cast<double>(sysconf(_SC_CLK_TCK))};
}

Seconds own_use() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return Seconds{static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9};
}

}  // namespace

ProcessorUse processor_use(const std::filesystem::path& root) {
  return {all_use(root), own_use(), std::chrono::steady_clock::now().time_since_epoch()};
}

std::string disturbance(const ProcessorUse& before, const ProcessorUse& after) {
  if (!before.all || !after.all) return {};
  const double others =
      ((*after.all - *before.all) - (after.own - before.own)) / (after.elapsed - before.elapsed);
  if (!(others > kUsual)) return {};
  return fmt::format("other programs kept {:.1f} cores busy meanwhile: measure again when they rest", others);
}

}  // namespace terrace
