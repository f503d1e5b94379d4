// SPDX-License-Identifier: Apache-2.0
// Claim: `terrace run` gives a program that does not fit in memory more accesses a second than a swap file.
//
// One unmodified program (pages_work.hpp) runs in control groups of the same memory: with a swap file, and
// under `terrace run`. They alternate. Rows: zipf (1 and 4 threads), sweep, fault, fits; and inside one
// process: disk, faults by size, hot set. It needs root. Programs of Debian are measured by
// bench/pages_programs.
//
//   bench/run pages [--quick] [--only zipf|sweep|fault|fits|disk|faults|hot] [--policy NAME] [--rounds N]
//   [--zswap | --zram]
#include <filesystem>
#include <fstream>
#include <map>

#include "base/child_process.hpp"
#include "contender.hpp"
#include "memory_group.hpp"
#include "pages_inside.hpp"
#include "pages_work.hpp"
#include "report.hpp"
#include "swap_file.hpp"
#include "terrace/bytes.hpp"
#include "zram_swap.hpp"

namespace terrace::bench {
namespace {

using Json = nlohmann::json;
using namespace literals;

struct Setting {
  Bytes memory, data;
  int rounds = 3;
  double seconds = 10;
  int touches = 20000;
  std::string policy = "keeper";
  bool zswap = false, zram = false;
};

/// Compression before the swap file while it is in scope, where it is wanted.
class Zswap {
 public:
  explicit Zswap(bool on) : on_(on) { set('Y'); }
  Zswap(const Zswap&) = delete;
  ~Zswap() { set('N'); }

 private:
  void set(char value) const {
    if (on_ && !(std::ofstream("/sys/module/zswap/parameters/enabled") << value << std::flush))
      throw std::runtime_error("this kernel has no zswap");
  }
  bool on_;
};

class Bench {
 public:
  Bench(const Setting& setting, const std::filesystem::path& folder) : setting_(setting), folder_(folder) {}

  /// Swap and ours in turn; the figures that each gave.
  std::map<std::string, std::vector<Json>> alternate(const std::vector<std::string>& work,
                                                     Bytes memory) const {
    std::map<std::string, std::vector<Json>> all;
    for (int round = 0; round < setting_.rounds; ++round) {
      all["swap"].push_back(setting_.zram ? run_on_zram(work, memory) : run_on_a_file(work, memory));
      const MemoryGroup group("pages-run", memory, MemoryGroup::Swap::none);
      all["terrace"].push_back(run(group.within(ours(work, memory))));
    }
    return all;
  }

  Json run_on_a_file(const std::vector<std::string>& work, Bytes memory) const {
    const SwapFile swap(folder_ / "swap", setting_.data + 512_MiB);
    const Zswap compressed(setting_.zswap);
    const MemoryGroup group("pages-swap", memory, MemoryGroup::Swap::unlimited);
    return run(group.within(work));
  }

  /// Compressed memory is in no group: how much it takes is watched while the program runs.
  Json run_on_zram(const std::vector<std::string>& work, Bytes memory) const {
    const ZramSwap swap(setting_.data + 512_MiB);
    const MemoryGroup group("pages-zram", memory, MemoryGroup::Swap::unlimited);
    ZramSwap::Use most{};
    std::atomic<bool> runs{true};
    std::thread watcher([&] {
      for (; runs; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
        if (swap.used().taken > most.taken) most = swap.used();
      }
    });
    Json result = run(group.within(work));
    runs = false;
    watcher.join();
    result["zram_bytes"] = most.taken.count;
    result["zram_held_bytes"] = most.held.count;
    return result;
  }

  std::vector<std::string> work(const std::string& name, Bytes data, const std::string& amount,
                                const std::string& threads = "1") const {
    return {std::filesystem::canonical("/proc/self/exe"),
            "work",
            name,
            std::to_string(data.count),
            amount,
            threads};
  }

  /// A sixteenth of the group is left for page tables, the kernel's buffers and the command itself.
  std::vector<std::string> ours(const std::vector<std::string>& work, Bytes memory) const {
    const auto program = std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() / "terrace";
    std::vector<std::string> all{
        program,  "run",   "--quiet",  "--fast",        std::to_string(memory.count / 16 * 15),
        "--slow", folder_, "--policy", setting_.policy, "--"};
    all.insert(all.end(), work.begin(), work.end());
    return all;
  }

  static Json run(const std::vector<std::string>& command) {
    const auto began = PagesClock::now();
    const ChildOutcome outcome = run_child(command, "").value();
    if (outcome.end != ChildOutcome::End::exited || outcome.code != 0) return {{"killed", true}};
    Json result = Json::parse(outcome.out);
    result["wall_seconds"] = seconds_since(began);
    return result;
  }

  const Setting& setting() const { return setting_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  Setting setting_;
  std::filesystem::path folder_;
};

std::vector<double> column(const std::vector<Json>& runs, const char* key) {
  std::vector<double> values;
  for (const Json& run : runs) {
    if (run.contains(key)) values.push_back(run.at(key));
  }
  return values;
}

double middle(const std::vector<Json>& runs, const char* key) {
  const auto values = column(runs, key);
  return values.empty() ? 0 : median(values);
}

/// Prints a row, and returns how many times better ours is: larger is better, or smaller.
Json compare(const std::string& name, const std::map<std::string, std::vector<Json>>& runs, const char* key,
             bool larger) {
  const double swap = middle(runs.at("swap"), key), ours = middle(runs.at("terrace"), key);
  const double ratio = swap == 0 || ours == 0 ? 0 : larger ? ours / swap : swap / ours;
  print_line("| " + name + " | " + std::to_string(swap) + " | " + std::to_string(ours) + " | " +
             std::to_string(ratio) + " |");
  return {{"name", name},
          {"figure", key},
          {"swap", runs.at("swap")},
          {"terrace", runs.at("terrace")},
          {"ratio", ratio}};
}

void add_zipf(const Bench& bench, Json& rows) {
  const std::string seconds = std::to_string(bench.setting().seconds);
  for (const char* threads : {"1", "4"}) {
    const auto runs =
        bench.alternate(bench.work("zipf", bench.setting().data, seconds, threads), bench.setting().memory);
    rows.push_back(
        compare(std::string("zipf 0.99, accesses/s, threads ") + threads, runs, "per_second", true));
  }
}

void add_sweep(const Bench& bench, Json& rows) {
  const auto runs = bench.alternate(bench.work("sweep", bench.setting().data, "1"), bench.setting().memory);
  rows.push_back(compare("read sweep, s", runs, "read_seconds", false));
  rows.push_back(compare("write sweep, s", runs, "write_seconds", false));
  rows.push_back(compare("filling, s", runs, "fill_seconds", false));
}

void add_fault(const Bench& bench, Json& rows) {
  const auto runs =
      bench.alternate(bench.work("fault", bench.setting().data, std::to_string(bench.setting().touches)),
                      bench.setting().memory);
  rows.push_back(compare("fault p50, us", runs, "p50_us", false));
  rows.push_back(compare("fault p99, us", runs, "p99_us", false));
}

void add_fits(const Bench& bench, Json& rows) {
  const Bytes data = bench.setting().memory / 2;
  const auto runs = bench.alternate(bench.work("zipf", data, std::to_string(bench.setting().seconds)),
                                    bench.setting().memory);
  rows.push_back(compare("everything fits, accesses/s", runs, "per_second", true));
  rows.push_back(compare("everything fits, filling s", runs, "fill_seconds", false));
}

void add_disk(const Bench& bench, Json& rows) {
  rows.push_back({{"name", "disk, GB/s"}, {"rates", disk_rates(bench.folder())}});
  print_line("| disk | " + rows.back().at("rates").dump() + " |");
}

void add_faults(const Bench& bench, Json& rows) {
  for (const auto& [name, bringing] : {std::pair{"fault of 4 KiB", pages::Bringing::page},
                                       std::pair{"fault of 16 KiB", pages::Bringing::quarter},
                                       std::pair{"fault of 64 KiB", pages::Bringing::whole}}) {
    const Bytes data = bench.setting().data / 2, fast = bench.setting().memory / 2;
    rows.push_back({{"name", name},
                    {"times", fault_times(bench.folder(), data, fast, bringing, bench.setting().touches)}});
    print_line("| " + std::string(name) + " | " + rows.back().at("times").dump() + " |");
  }
}

void add_hot(const Bench& bench, Json& rows) {
  const Bytes data = bench.setting().memory, fast = bench.setting().memory / 2;
  const Json found = hot_set(bench.folder(), data, fast, 30);
  rows.push_back({{"name", "hot set"}, {"found", found}});
  print_line("| hot set | " + found.at("over_time").back().dump() + " | overhead " +
             std::to_string(found.at("largest_overhead").get<double>()) + " |");
}

void run_bench(int argc, char** argv) {
  bool quick = false, zswap = false, zram = false;
  std::string only, policy = "keeper";
  int rounds = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--quick")
      quick = true;
    else if (option == "--zswap")
      zswap = true;
    else if (option == "--zram")
      zram = true;
    else if (option == "--only" && i + 1 < argc)
      only = argv[++i];
    else if (option == "--policy" && i + 1 < argc)
      policy = argv[++i];
    else if (option == "--rounds" && i + 1 < argc)
      rounds = std::stoi(argv[++i]);
    else
      throw std::runtime_error(
          "unknown option '" + option +
          "': the options are --quick, --zswap, --zram, --only ROW, --policy NAME and --rounds N");
  }
  const ScratchFolder folder("build/bench-pages");
  const Setting full{1_GiB, 4_GiB, 3, 10, 20000}, small{128_MiB, 512_MiB, 1, 3, 2000};
  Setting setting = quick ? small : full;
  setting.policy = policy;
  setting.zswap = zswap;
  setting.zram = zram;
  if (rounds > 0) setting.rounds = rounds;
  const Bench bench(setting, folder.path());
  const std::map<std::string, void (*)(const Bench&, Json&)> rows{
      {"zipf", add_zipf}, {"sweep", add_sweep},   {"fault", add_fault}, {"fits", add_fits},
      {"disk", add_disk}, {"faults", add_faults}, {"hot", add_hot}};
  if (!only.empty() && !rows.contains(only)) throw std::runtime_error("there is no row '" + only + "'");
  print_head(readable(bench.setting().data) + " in " + readable(bench.setting().memory),
             "| row | swap file | terrace run | times better |");
  Json details = Json::array();
  for (const auto& [name, add] : rows) {
    if (only.empty() || only == name) add(bench, details);
  }
  std::vector<double> ratios;
  for (const Json& row : details) {
    if (row.contains("ratio")) ratios.push_back(row.at("ratio"));
  }
  if (ratios.empty()) ratios.push_back(1);
  print_result("terrace run against a swap file of the same memory",
               ">= 1.35 zipf, >= 4 sweeps, >= 0.97 fits", median(ratios), spread(ratios), details);
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::string_view(argv[1]) == "work")
      terrace::bench::do_pages_work(argc, argv);
    else
      terrace::bench::run_bench(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
