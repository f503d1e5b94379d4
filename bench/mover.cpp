// Claim: memory is copied at least as fast as by memcpy with the same threads, and a disk is used as fully as
// by fio with the same requests.
//
//   bench_mover [--quick] [--folder DIR]      DIR: where the disk is measured; default build/, else here
//
// Contenders run in turns on memory touched before; each ratio is the median over the rounds. The last line
// is JSON; its ratio is the least of stream_copy to memcpy from 1 MiB up, its spread that case's extremes.
#include <string_view>

#include "mover_disk.hpp"
#include "terrace/tier.hpp"

namespace terrace::bench {
namespace {

using nlohmann::json;

struct Options {
  bool quick = false;
  std::filesystem::path folder = std::filesystem::is_directory("build") ? "build" : ".";
};

json row(const MemoryCase& at, const char* who, const Ratios& ratios) {
  fmt::print(
      "{:>11} {:>8} KiB, {} thread{}, {}: {:6.2f} GB/s, memcpy {:6.2f}, ratio {:.2f} ({:.2f} to {:.2f})\n",
      who, at.bytes >> 10, at.threads, at.threads == 1 ? " " : "s", at.hot ? "hot " : "cold", ratios.ours,
      ratios.theirs, ratios.median(), ratios.rounds.front(), ratios.rounds.back());
  std::fflush(stdout);
  return {{"contender", who},         {"bytes", at.bytes},
          {"threads", at.threads},    {"cache", at.hot ? "hot" : "cold"},
          {"gb_per_s", ratios.ours},  {"memcpy_gb_per_s", ratios.theirs},
          {"ratio", ratios.median()}, {"spread", {ratios.rounds.front(), ratios.rounds.back()}}};
}

std::vector<MemoryCase> memory_cases(bool quick) {
  std::vector<MemoryCase> cases;
  for (const unsigned threads : {1u, 2u}) {
    for (std::size_t bytes = 64 << 10; bytes < kMemory / threads; bytes *= quick ? 16 : 4) {
      cases.push_back({bytes, threads, true});
      cases.push_back({bytes, threads, false});
    }
    cases.push_back({kMemory / threads, threads, false});
  }
  return cases;
}

void fill(Tier& tier, std::uint64_t seed) {
  auto* words = reinterpret_cast<std::uint64_t*>(tier.memory());
  for (std::size_t i = 0; i < kMemory / 8; ++i) words[i] = seed = seed * 6364136223846793005u + 1;
}

bool same(Tier& a, Tier& b, std::size_t bytes) { return std::memcmp(a.memory(), b.memory(), bytes) == 0; }

struct Machine {
  std::unique_ptr<Tier> from = open_tier(fmt::format("dram:{},threads=2", kMemory)).value();
  std::unique_ptr<Tier> to = open_tier(fmt::format("dram:{},threads=2", kMemory)).value();
};

// The claim's ratio is the least of its cases.
void note_ratio(const MemoryCase& at, const Ratios& ratios, json& result) {
  if (at.bytes < std::size_t{1} << 20 || (result.contains("ratio") && result["ratio"] <= ratios.median()))
    return;
  result["ratio"] = ratios.median();
  result["spread"] = {ratios.rounds.front(), ratios.rounds.back()};
}

void measure_memory(Machine& machine, const Options& options, json& result) {
  const int rounds = options.quick ? 9 : 15;
  for (const MemoryCase& at : memory_cases(options.quick)) {
    std::byte* to = machine.to->memory();
    const std::byte* from = machine.from->memory();
    const auto theirs = [&] { return memcpy_rate(at, to, from); };
    const Ratios streamed = compare(
        rounds, [&] { return stream_rate(at, to, from); }, theirs);
    result["details"]["memory"].push_back(row(at, "stream_copy", streamed));
    note_ratio(at, streamed, result);
    if (at.hot) continue;
    Mover mover({machine.from.get(), machine.to.get()}, {.helpers = at.threads - 1});
    const Ratios moved = compare(
        rounds, [&] { return mover_rate(at, mover); }, theirs);
    result["details"]["memory"].push_back(row(at, "mover", moved));
    note_ratio(at, moved, result);
  }
}

bool memory_is_right(Machine& machine) {
  fill(*machine.from, 1);
  std::memset(machine.to->memory(), 0, kMemory);
  stream_copy(machine.to->memory(), machine.from->memory(), kMemory);
  const bool streamed = same(*machine.to, *machine.from, kMemory);
  std::memset(machine.to->memory(), 0, kMemory);
  Mover mover({machine.from.get(), machine.to.get()});
  mover.move({{{{0}, 0, {kMemory}}, {{1}, 0, {kMemory}}}});
  return streamed && same(*machine.to, *machine.from, kMemory);
}

void measure_disk(Machine& machine, const Options& options, json& result) {
  const std::string file = (options.folder / "bench-mover").string();
  const auto disk = open_tier(fmt::format("file:{}:{}", file, to_string(kDisk))).value();
  Mover mover({machine.from.get(), machine.to.get(), disk.get()});
  fill(*machine.from, 2);
  fill(*machine.to, 2);
  mover.move(whole_disk(Access::write));  // the first write of a file is slower than later ones
  std::memset(machine.to->memory(), 0, kMemory);
  mover.move({whole_disk(Access::read).back()});
  result["correct"] = result["correct"] && same(*machine.to, *machine.from, kMemory);
  json& details = result["details"]["disk"];
  details = {{"tier", disk->description().name}, {"bytes", kDisk.count}};
  if (!have_fio()) {
    details["note"] = "fio is not installed: nothing to compare with";
    return;
  }
  const Fio fio(options.folder, kDisk, *disk->blocks());
  fio.rate(Access::write);
  for (const Access access : {Access::write, Access::read}) {
    const char* const name = access == Access::read ? "read" : "write";
    const Ratios ratios = compare(
        options.quick ? 3 : 7, [&] { return disk_rate(mover, access); }, [&] { return fio.rate(access); });
    fmt::print("{:>5} disk: {:.2f} GB/s, fio {:.2f}, ratio {:.2f} ({:.2f} to {:.2f})\n", name, ratios.ours,
               ratios.theirs, ratios.median(), ratios.rounds.front(), ratios.rounds.back());
    details[name] = {{"gb_per_s", ratios.ours},
                     {"fio_gb_per_s", ratios.theirs},
                     {"ratio", ratios.median()},
                     {"spread", {ratios.rounds.front(), ratios.rounds.back()}}};
  }
}

json run(const Options& options) {
  Machine machine;
  json result{{"claim", "memory is copied as fast as by memcpy, disks are used as fully as by fio"},
              {"aim", "ratio >= 1.0 to memcpy from 1 MiB up; >= 0.9 to fio each way"},
              {"correct", memory_is_right(machine)}};
  measure_memory(machine, options, result);
  measure_disk(machine, options, result);
  const json& disk = result["details"]["disk"];
  const auto at_least = [](const json& of, double aim) {
    return of.is_object() && of.value("ratio", 0.0) >= aim;
  };
  result["holds"] = {{"memory", result["ratio"] >= 1.0},
                     {"disk_write", at_least(disk.value("write", json()), 0.9)},
                     {"disk_read", at_least(disk.value("read", json()), 0.9)}};
  return result;
}

}  // namespace
}  // namespace terrace::bench

int main(int count, char** arguments) try {
  terrace::bench::Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--folder" && i + 1 < count) {
      options.folder = arguments[++i];
    } else {
      fmt::print(stderr, "bench_mover takes --quick and --folder DIR, not '{}'\n", argument);
      return 2;
    }
  }
  const auto result = terrace::bench::run(options);
  fmt::print("{}\n", result.dump());
  return result["correct"] == true ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "bench_mover: {}\n", error.what());
  return 1;
}
