// SPDX-License-Identifier: Apache-2.0
// Claim: copies of 1 MiB and more between a GPU and pinned memory go at 0.95 of plain cudaMemcpyAsync or
// faster, each way and both at once; neighbours of 64 KiB at 0.9 of the rate of 1 MiB; a GPU uses a disk, by
// way of pinned memory, at 0.9 of the disk alone; the host issues a step in 5 us an instruction, and steps
// take what was predicted.
//
//   bench_device [--quick] [--dry] [--folder DIR]      DIR: where the disk is measured; default build/, else
//   here
//
// Contenders run in turns on memory touched before; each ratio is the median over the rounds. The last line
// is JSON; its ratio is the least of the first claim, its spread that case's extremes. Without a GPU only the
// host's own cost of issuing is measured, on a device that does nothing. --dry goes through everything in
// little, on a fake device: its figures mean nothing.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "device_null.hpp"
#include "device_plain.hpp"
#include "device_step.hpp"
#include "mover_memory.hpp"
#include "options.hpp"
#include "profile/calibrate_device.hpp"
#include "terrace/tier.hpp"
#include "tiers/cuda.hpp"
#include "tiers/fake_device.hpp"

namespace terrace::bench {
namespace {

using namespace literals;
using nlohmann::json;

constexpr std::uint32_t kGpu = 0, kPinned = 1, kFile = 2;

struct Options {
  bool quick = false, dry = false;
  /// On each side, for each direction.
  std::uint64_t all() const { return dry ? 2 << 20 : 512 << 20; }
  std::uint64_t largest() const { return all() / 2; }
  std::filesystem::path folder = std::filesystem::is_directory("build") ? "build" : ".";
  int rounds() const { return dry ? 1 : quick ? 5 : 11; }
};

enum class Way { in, out, both };
constexpr const char* name_of(Way way) { return way == Way::in ? "in" : way == Way::out ? "out" : "both"; }

// A GPU tier and a pinned one, each with a half for either direction, so that both can be under way.
struct Tiers {
  explicit Tiers(const Options& options) : all(options.all()) {
    if (options.dry) fake = std::make_shared<FakeDevice>(FakeDevice::Schedule::eager);
    gpu = open(parse_tier_spec(fmt::format("cuda:0:{}", 2 * all)).value()).value();
    pinned = open(parse_tier_spec(fmt::format("pinned:{}", 2 * all)).value()).value();
  }
  /// As open_tier does, on the fake device if there is one.
  Result<std::unique_ptr<Tier>> open(const TierSpec& spec) const {
    if (!fake || (spec.kind != TierKind::cuda && spec.kind != TierKind::pinned && !spec.on_device)) {
      TierSpec real = spec;
      if (spec.on_device) {
        real = TierSpec{};
        real.kind = TierKind::cuda;
        real.capacity = spec.capacity;
      }
      return open_tier(real);
    }
    if (spec.kind == TierKind::pinned) return make_pinned_for(fake, spec.capacity);
    TierSpec there;
    there.kind = TierKind::fake;
    there.on_device = true;
    there.capacity = spec.capacity;
    return open_fake_device_tier(there, fake);
  }
  Device& device() const { return *gpu->device()->device; }

  const std::uint64_t all;
  std::shared_ptr<FakeDevice> fake;
  std::unique_ptr<Tier> gpu, pinned;
};

Move move_of(Way way, std::uint64_t all, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t at = offset + (way == Way::out ? all : 0);
  const Extent gpu{{kGpu}, at, {bytes}}, pinned{{kPinned}, at, {bytes}};
  return way == Way::in ? Move{pinned, gpu} : Move{gpu, pinned};
}

std::size_t amount(Way way, std::size_t each) { return way == Way::both ? 2 * each : each; }

// Every piece is a transfer of its own, all of them under way at once, as a plan's copies are.
double mover_rate(Mover& mover, Way way, std::uint64_t all, std::uint64_t piece, std::uint64_t each) {
  std::vector<Transfer> transfers;
  transfers.reserve(2 * each / piece);
  return rate(amount(way, each), [&] {
    for (std::uint64_t at = 0; at < each; at += piece) {
      if (way != Way::out) transfers.push_back(mover.start({move_of(Way::in, all, at, piece)}));
      if (way != Way::in) transfers.push_back(mover.start({move_of(Way::out, all, at, piece)}));
    }
    for (Transfer& transfer : transfers) transfer.wait();
  });
}

// The same bytes in groups that lie side by side.
double neighbours_rate(Mover& mover, Way way, std::uint64_t piece, std::uint64_t group, std::uint64_t each) {
  const std::uint64_t all = each;
  std::vector<Transfer> transfers;
  return rate(each, [&] {
    for (std::uint64_t first = 0; first < each; first += piece * group) {
      std::vector<Move> moves;
      for (std::uint64_t i = 0; i < group; ++i) moves.push_back(move_of(way, all, first + i * piece, piece));
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
  const std::uint64_t all = options.all();
  PlainCopies plain(options.dry ? 0 : 2 * all);
  for (std::uint64_t piece = 64 << 10; piece <= options.largest(); piece *= 4) {
    const std::uint64_t each = piece < 1 << 20 ? all / 4 : all;
    for (const Way way : {Way::in, Way::out, Way::both}) {
      const auto ours = [&] { return mover_rate(mover, way, all, piece, each); };
      const auto theirs = [&] {
        return rate(amount(way, each), [&] {
          for (std::uint64_t at = 0; at < each; at += piece) {
            if (way != Way::out) plain.in(at, piece);
            if (way != Way::in) plain.out(all + at, piece);
          }
          plain.finish();
        });
      };
      const Ratios ratios = options.dry ? compare(1, ours, ours) : compare(options.rounds(), ours, theirs);
      const std::string what = fmt::format("{} KiB {}", piece >> 10, name_of(way));
      result["details"]["copies"].push_back(row(what, ratios, options.dry ? "itself" : "cudaMemcpyAsync"));
      if (piece < 1 << 20 || (result.contains("ratio") && result["ratio"] <= ratios.median())) continue;
      result["ratio"] = ratios.median();
      result["spread"] = {ratios.rounds.front(), ratios.rounds.back()};
    }
  }
}

void measure_neighbours(Mover& mover, const Options& options, json& result) {
  for (const Way way : {Way::in, Way::out}) {
    const Ratios ratios = compare(
        options.rounds(), [&] { return neighbours_rate(mover, way, 64 << 10, 16, options.all()); },
        [&] { return mover_rate(mover, way, options.all(), 1 << 20, options.all()); });
    result["details"]["neighbours"].push_back(
        row(fmt::format("16 neighbours of 64 KiB {}", name_of(way)), ratios, "1 MiB each"));
  }
}

bool copies_are_right(Tiers& tiers, Mover& mover) {
  auto* const words = reinterpret_cast<std::uint64_t*>(tiers.pinned->memory());
  const Bytes all{tiers.all};
  const std::size_t half = all.count / 8;
  for (std::size_t i = 0; i < half; ++i) words[i] = i * 6364136223846793005u + 1;
  mover.move({move_of(Way::in, tiers.all, 0, tiers.all)});
  mover.move({{{{kGpu}, 0, all}, {{kGpu}, all.count, all}}});
  mover.move({move_of(Way::out, tiers.all, 0, tiers.all)});
  return std::equal(words, words + half, words + half);
}

// The whole file against the GPU's first half, or against the pinned one.
double disk_rate(Mover& mover, std::uint32_t tier, Access access, Bytes all) {
  const Extent file{{kFile}, 0, all}, other{{tier}, 0, all};
  return rate(all.count, [&] {
    mover.move({access == Access::read ? Move{file, other} : Move{other, file}});
  });
}

void measure_disk(Tiers& tiers, const Options& options, json& result) {
  const std::string path = (options.folder / "bench-device").string();
  const Bytes all{tiers.all};
  const auto file =
      open_tier(fmt::format("file:{}:{}{}", path, all.count, options.dry ? ",buffered" : "")).value();
  Mover mover({tiers.gpu.get(), tiers.pinned.get(), file.get()});
  disk_rate(mover, kGpu, Access::write, all);
  disk_rate(mover, kPinned, Access::read, all);
  auto* const words = reinterpret_cast<std::uint64_t*>(tiers.pinned->memory());
  for (std::size_t i = 0; i < all.count / 8; ++i) {
    if (words[i] != i * 6364136223846793005u + 1) throw std::runtime_error("the disk has other bytes");
  }
  for (const Access access : {Access::write, Access::read}) {
    const Ratios ratios = compare(
        options.dry     ? 1
        : options.quick ? 3
                        : 7,
        [&] { return disk_rate(mover, kGpu, access, all); },
        [&] { return disk_rate(mover, kPinned, access, all); });
    result["details"]["disk"].push_back(
        row(access == Access::read ? "disk to GPU" : "GPU to disk", ratios, "the disk alone"));
  }
}

// A kernel that does nothing, and a device that does not even start it.
json issuing_on_null_device(int rounds) {
  const auto device = std::make_shared<NullDevice>();
  const Graph graph = ManySmallThings::graph();
  const auto backend = foreign_device_backend({{"random", [](const ForeignLaunch&) {}}});
  return measure_issuing(
      device->name(), [&](const TierSpec& spec) { return open_on(device, spec); },
      backend->instantiate(graph), graph, rounds);
}

json issuing_on(const Tiers& tiers, SyntheticKernels& kernels, int rounds) {
  const Graph graph = ManySmallThings::graph();
  const auto backend = foreign_device_backend(
      {{"random", [&](const ForeignLaunch& launch) { kernels.spin(launch.queue, Seconds{0}); }}});
  const auto open = [&](TierSpec spec) {
    if (spec.kind == TierKind::dram) {
      spec.kind = TierKind::pinned;
      spec.huge_pages = false;
    }
    return tiers.open(spec);
  };
  return measure_issuing(tiers.device().name(), open, backend->instantiate(graph), graph, rounds);
}

json predicted(const Tiers& tiers, SyntheticKernels& kernels, const Options& options) {
  DeviceCalibrateOptions calibration;
  const std::uint64_t room = options.dry ? 64 << 20 : 16ULL << 30;
  const char* const fast = options.dry ? "fake:{},device" : "cuda:0:{}";
  calibration.fast = parse_tier_spec(fmt::format(fmt::runtime(fast), room)).value();
  calibration.slow = {parse_tier_spec(fmt::format("pinned:{}", room)).value()};
  calibration.open = [&](const TierSpec& spec) { return tiers.open(spec); };
  if (options.dry) {
    calibration.sizes = {64_KiB, 1_MiB};
    calibration.rounds = 1;
    calibration.round = Seconds{1e-3};
  } else {
    calibration.sizes = {64_KiB, 256_KiB, 1_MiB, 4_MiB, 16_MiB, 64_MiB};
  }
  const Machine machine = calibrate_device(calibration).value();
  const Bytes largest = options.dry ? 64_KiB : 64_MiB;
  json result = PredictedSteps(machine, calibration.open, kernels, largest)
                    .run(options.dry     ? 2
                         : options.quick ? 10
                                         : 40);
  result["machine"] = json::parse(to_json(machine));
  return result;
}

// What a part that fails says is kept, and the others are measured.
template <class Part>
void part_of(json& result, const char* name, Part part) {
  try {
    part();
  } catch (const std::exception& error) {
    print_line(fmt::format("{} failed: {}", name, error.what()));
    result["details"][fmt::format("{}_error", name)] = error.what();
    result["correct"] = false;
  }
}

void measure_gpu(const Options& options, json& result) {
  const auto started = steady_clock().now();
  Tiers tiers(options);
  const double opening = Seconds(steady_clock().now() - started).count();
  result["details"]["opening_seconds"] = opening;
  print_line(fmt::format("opened {} and {} in {:.2f} s", tiers.gpu->description().name,
                         tiers.pinned->description().name, opening));
  part_of(result, "copies", [&] {
    Mover mover({tiers.gpu.get(), tiers.pinned.get()});
    measure_copies(mover, options, result);
    measure_neighbours(mover, options, result);
    if (!copies_are_right(tiers, mover))
      throw std::runtime_error("copies have other bytes than their source");
  });
  part_of(result, "disk", [&] { measure_disk(tiers, options, result); });
  const auto kernels = synthetic_kernels(tiers.device()).value();
  part_of(result, "issuing",
          [&] { result["details"]["issuing"].push_back(issuing_on(tiers, *kernels, options.dry ? 2 : 20)); });
  part_of(result, "predicted", [&] { result["details"]["predicted"] = predicted(tiers, *kernels, options); });
}

void run(const Options& options) {
  json result{
      {"claim", "copies between a GPU, pinned memory and a disk; the cost of issuing; predicted steps"},
      {"aim",
       "1 MiB and more >= 0.95 of cudaMemcpyAsync; neighbours >= 0.9 of 1 MiB; disk >= 0.9; at "
       "most 5 us an instruction; steps within 5%"},
      {"correct", true}};
  result["details"]["issuing"].push_back(issuing_on_null_device(options.dry ? 2 : 50));
  if (const auto gpu = open_cuda_device(0); gpu || options.dry) {
    measure_gpu(options, result);
  } else {
    result["details"]["gpu"] = gpu.error().message;
    print_line("without a GPU nothing else is measured: " + gpu.error().message);
  }
  fmt::print("{}\n", result.dump());
  if (!result["correct"]) throw std::runtime_error("something failed: the lines above say what");
}

Options options_of(int argc, char** argv) {
  Options options;
  read_options(argc, argv,
               {{"--quick", [&] { options.quick = true; }}, {"--dry", [&] { options.dry = true; }}},
               {{"--folder DIR", [&](const std::string& folder) { options.folder = folder; }}});
  return options;
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  using namespace terrace::bench;
  return guarded(argv, [&] { run(options_of(argc, argv)); });
}
