// SPDX-License-Identifier: Apache-2.0
// Claim: copies of 1 MiB and more between a GPU and pinned memory go at 0.95 of plain cudaMemcpyAsync or
// faster, each way and both at once; neighbours of 64 KiB at 0.9 of the rate of 1 MiB; a GPU uses a disk, by
// way of pinned memory, at 0.9 of the disk alone.
//
//   bench_device [--quick] [--folder DIR]      DIR: where the disk is measured; default build/, else here
//
// Contenders run in turns on memory touched before; each ratio is the median over the rounds. The last line
// is JSON; its ratio is the least of the first claim, its spread that case's extremes.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "device_plain.hpp"
#include "mover_memory.hpp"
#include "terrace/tier.hpp"

namespace terrace::bench {
namespace {

using namespace literals;
using nlohmann::json;

constexpr Bytes kAll = 512_MiB;  // on each side, for each direction
constexpr std::uint32_t kGpu = 0, kPinned = 1, kFile = 2;

struct Options {
  bool quick = false;
  std::filesystem::path folder = std::filesystem::is_directory("build") ? "build" : ".";
  int rounds() const { return quick ? 5 : 11; }
};

enum class Way { in, out, both };
constexpr const char* name_of(Way way) { return way == Way::in ? "in" : way == Way::out ? "out" : "both"; }

// A GPU tier and a pinned one, each with a half for either direction, so that both can be under way.
struct Machine {
  std::unique_ptr<Tier> gpu = open_tier(fmt::format("cuda:0:{}", 2 * kAll.count)).value();
  std::unique_ptr<Tier> pinned = open_tier(fmt::format("pinned:{}", 2 * kAll.count)).value();
};

Move move_of(Way way, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t at = offset + (way == Way::out ? kAll.count : 0);
  const Extent gpu{{kGpu}, at, {bytes}}, pinned{{kPinned}, at, {bytes}};
  return way == Way::in ? Move{pinned, gpu} : Move{gpu, pinned};
}

std::size_t amount(Way way, std::size_t each) { return way == Way::both ? 2 * each : each; }

// Every piece is a transfer of its own, all of them under way at once, as a plan's copies are.
double mover_rate(Mover& mover, Way way, std::uint64_t piece, std::uint64_t each) {
  std::vector<Transfer> transfers;
  transfers.reserve(2 * each / piece);
  return rate(amount(way, each), [&] {
    for (std::uint64_t at = 0; at < each; at += piece) {
      if (way != Way::out) transfers.push_back(mover.start({move_of(Way::in, at, piece)}));
      if (way != Way::in) transfers.push_back(mover.start({move_of(Way::out, at, piece)}));
    }
    for (Transfer& transfer : transfers) transfer.wait();
  });
}

// The same bytes in groups that lie side by side.
double neighbours_rate(Mover& mover, Way way, std::uint64_t piece, std::uint64_t group, std::uint64_t each) {
  std::vector<Transfer> transfers;
  return rate(each, [&] {
    for (std::uint64_t first = 0; first < each; first += piece * group) {
      std::vector<Move> moves;
      for (std::uint64_t i = 0; i < group; ++i) moves.push_back(move_of(way, first + i * piece, piece));
      transfers.push_back(mover.start(std::move(moves)));
    }
    for (Transfer& transfer : transfers) transfer.wait();
  });
}

json row(const std::string& what, const Ratios& ratios, const char* rival) {
  fmt::print("{:<34} {:7.2f} GB/s, {} {:7.2f}, ratio {:.3f} ({:.3f} to {:.3f})\n", what, ratios.ours, rival,
             ratios.theirs, ratios.median(), ratios.rounds.front(), ratios.rounds.back());
  std::fflush(stdout);
  return {{"case", what},
          {"gb_per_s", ratios.ours},
          {"rival", rival},
          {"rival_gb_per_s", ratios.theirs},
          {"ratio", ratios.median()},
          {"spread", {ratios.rounds.front(), ratios.rounds.back()}}};
}

void measure_copies(Mover& mover, const Options& options, json& result) {
  PlainCopies plain(2 * kAll.count);
  for (std::uint64_t piece = 64 << 10; piece <= 256 << 20; piece *= 4) {
    const std::uint64_t each = piece < 1 << 20 ? kAll.count / 4 : kAll.count;
    for (const Way way : {Way::in, Way::out, Way::both}) {
      const Ratios ratios = compare(
          options.rounds(), [&] { return mover_rate(mover, way, piece, each); },
          [&] {
            return rate(amount(way, each), [&] {
              for (std::uint64_t at = 0; at < each; at += piece) {
                if (way != Way::out) plain.in(at, piece);
                if (way != Way::in) plain.out(kAll.count + at, piece);
              }
              plain.finish();
            });
          });
      const std::string what = fmt::format("{} KiB {}", piece >> 10, name_of(way));
      result["details"]["copies"].push_back(row(what, ratios, "cudaMemcpyAsync"));
      if (piece < 1 << 20 || (result.contains("ratio") && result["ratio"] <= ratios.median())) continue;
      result["ratio"] = ratios.median();
      result["spread"] = {ratios.rounds.front(), ratios.rounds.back()};
    }
  }
}

void measure_neighbours(Mover& mover, const Options& options, json& result) {
  for (const Way way : {Way::in, Way::out}) {
    const Ratios ratios = compare(
        options.rounds(), [&] { return neighbours_rate(mover, way, 64 << 10, 16, kAll.count); },
        [&] { return mover_rate(mover, way, 1 << 20, kAll.count); });
    result["details"]["neighbours"].push_back(
        row(fmt::format("16 neighbours of 64 KiB {}", name_of(way)), ratios, "1 MiB each"));
  }
}

bool copies_are_right(Machine& machine, Mover& mover) {
  auto* const words = reinterpret_cast<std::uint64_t*>(machine.pinned->memory());
  const std::size_t half = kAll.count / 8;
  for (std::size_t i = 0; i < half; ++i) words[i] = i * 6364136223846793005u + 1;
  mover.move({move_of(Way::in, 0, kAll.count)});
  mover.move({{{{kGpu}, 0, kAll}, {{kGpu}, kAll.count, kAll}}});
  mover.move({move_of(Way::out, 0, kAll.count)});
  return std::equal(words, words + half, words + half);
}

// The whole file against the GPU's first half, or against the pinned one.
double disk_rate(Mover& mover, std::uint32_t tier, Access access) {
  const Extent file{{kFile}, 0, kAll}, other{{tier}, 0, kAll};
  return rate(kAll.count, [&] {
    mover.move({access == Access::read ? Move{file, other} : Move{other, file}});
  });
}

void measure_disk(Machine& machine, const Options& options, json& result) {
  const std::string path = (options.folder / "bench-device").string();
  const auto file = open_tier(fmt::format("file:{}:{}", path, kAll.count)).value();
  Mover mover({machine.gpu.get(), machine.pinned.get(), file.get()});
  disk_rate(mover, kGpu, Access::write);
  disk_rate(mover, kPinned, Access::read);
  auto* const words = reinterpret_cast<std::uint64_t*>(machine.pinned->memory());
  for (std::size_t i = 0; i < kAll.count / 8; ++i) {
    if (words[i] != i * 6364136223846793005u + 1) throw std::runtime_error("the disk has other bytes");
  }
  for (const Access access : {Access::write, Access::read}) {
    const Ratios ratios = compare(
        options.quick ? 3 : 7, [&] { return disk_rate(mover, kGpu, access); },
        [&] { return disk_rate(mover, kPinned, access); });
    result["details"]["disk"].push_back(
        row(access == Access::read ? "disk to GPU" : "GPU to disk", ratios, "the disk alone"));
  }
}

void run(const Options& options) {
  const auto started = steady_clock().now();
  Machine machine;
  json result{{"claim", "copies between a GPU, pinned memory and a disk"},
              {"aim", "1 MiB and more >= 0.95 of cudaMemcpyAsync; neighbours >= 0.9 of 1 MiB; disk >= 0.9"}};
  const double opening = Seconds(steady_clock().now() - started).count();
  result["details"]["opening_seconds"] = opening;
  fmt::print("opened {} and {} in {:.2f} s\n", machine.gpu->description().name,
             machine.pinned->description().name, opening);
  {
    Mover mover({machine.gpu.get(), machine.pinned.get()});
    measure_copies(mover, options, result);
    measure_neighbours(mover, options, result);
    result["correct"] = copies_are_right(machine, mover);
  }
  try {
    measure_disk(machine, options, result);
  } catch (const std::exception& error) {
    result["details"]["disk_error"] = error.what();
    result["correct"] = false;
  }
  fmt::print("{}\n", result.dump());
  if (!result["correct"])
    throw std::runtime_error("the disk failed, or copies have other bytes than their source");
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (text == "--quick") {
      options.quick = true;
    } else if (text == "--folder" && i + 1 < argc) {
      options.folder = argv[++i];
    } else {
      throw std::runtime_error(fmt::format("unknown option '{}': there are --quick and --folder DIR", text));
    }
  }
  return options;
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  try {
    terrace::bench::run(terrace::bench::read_options(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
}
