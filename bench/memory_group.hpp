// A MemoryGroup is a control group (version 1) that limits the memory of the processes started in it.
//
// It is a child of this process's group, whose limits still apply. It is removed when it goes out of scope,
// by when its processes must have ended.
#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "terrace/bytes.hpp"

namespace terrace::bench {

class MemoryGroup {
 public:
  enum class Swap { none, unlimited };

  MemoryGroup(const std::string& name, Bytes limit, Swap swap)
      : folder_(own_group() / ("terrace-" + name + "-" + std::to_string(getpid()))) {
    std::error_code refused;
    if (!std::filesystem::create_directory(folder_, refused)) {
      throw std::runtime_error("cannot make the control group " + folder_.native() + " (" +
                               refused.message() + "): run this as root");
    }
    try {
      write("memory.limit_in_bytes", std::to_string(limit.count));
      if (swap == Swap::none) write("memory.memsw.limit_in_bytes", std::to_string(limit.count));
    } catch (...) {
      remove();
      throw;
    }
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  ~MemoryGroup() { remove(); }

  /// Returns a command that runs `command` inside this group from its first instruction on.
  std::vector<std::string> within(const std::vector<std::string>& command) const {
    std::vector<std::string> all{"/bin/sh", "-c", "echo $$ > \"$0\" && exec \"$@\"",
                                 folder_ / "cgroup.procs"};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }

  /// Returns the peak charge of the group: memory of its processes and page cache, without swap.
  Bytes peak() const { return {number("memory.max_usage_in_bytes")}; }
  /// Returns the limit as the kernel rounded it.
  Bytes limit() const { return {number("memory.limit_in_bytes")}; }

 private:
  static std::filesystem::path own_group() {
    const std::filesystem::path mount = "/sys/fs/cgroup/memory";
    if (!std::filesystem::exists(mount / "memory.limit_in_bytes")) {
      throw std::runtime_error("this computer has no memory control groups of version 1 at " +
                               mount.native() +
                               ": mount them, or start it with systemd.unified_cgroup_hierarchy=0");
    }
    // The lines have the form `id:controllers:path`.
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
      const std::size_t at = line.find(":memory:");
      if (at == line.npos) continue;
      // Inside a container the path may name a folder that only the host sees.
      const auto folder = mount / std::filesystem::path(line.substr(at + 8)).relative_path();
      return std::filesystem::exists(folder) ? folder : mount;
    }
    return mount;
  }

  void write(const char* file, const std::string& value) const {
    std::ofstream out(folder_ / file);
    if (!(out << value << std::flush)) {
      throw std::runtime_error("cannot set " + (folder_ / file).native() + " to " + value +
                               ": the kernel needs memory control groups that count swap (swapaccount=1)");
    }
  }

  std::uint64_t number(const char* file) const {
    std::uint64_t value = 0;
    std::ifstream(folder_ / file) >> value;
    return value;
  }

  /// A process that was waited for may still be leaving its group, so removal is retried.
  void remove() const {
    std::error_code busy;
    for (int i = 0; i < 100 && !std::filesystem::remove(folder_, busy) && busy; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  std::filesystem::path folder_;
};

}  // namespace terrace::bench
