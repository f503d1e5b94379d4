// SPDX-License-Identifier: Apache-2.0
// Row `lane`: what one 4 KiB read costs through a thread's own queue of a tier, and as a plain
// read past the page cache, which is what the device costs.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "ann_data.hpp"
#include "report.hpp"
#include "terrace/tier.hpp"

namespace terrace::bench {

class LaneContest {
 public:
  explicit LaneContest(const std::filesystem::path& folder)
      : path_(folder / "lane-file"),
        tier_(open_tier(fmt::format("file:{}:{}MiB,keep", path_.native(), kSize >> 20)).value()),
        lane_(tier_->lane()),
        descriptor_(open(path_.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC)),
        memory_(static_cast<std::byte*>(std::aligned_alloc(kUnit, kUnit))) {
    if (descriptor_ < 0 || memory_ == nullptr) throw std::runtime_error("cannot open " + path_.native());
    fill();
    lane_->register_memory({memory_, kUnit});
  }
  LaneContest(const LaneContest&) = delete;
  LaneContest& operator=(const LaneContest&) = delete;
  ~LaneContest() {
    lane_->forget_memory({memory_, kUnit});
    std::free(memory_);
    close(descriptor_);
    std::filesystem::remove(path_);
  }

  static constexpr std::uint64_t kUnit = 4096, kSize = 1U << 30;

  void plain(std::uint64_t offset) {
    if (pread(descriptor_, memory_, kUnit, static_cast<off_t>(offset)) != static_cast<ssize_t>(kUnit))
      throw std::runtime_error("cannot read " + path_.native());
  }
  void lane(std::uint64_t offset) { ask(*lane_, {Access::read, offset, piece(), 0}); }

 private:
  std::span<const Piece> piece() {
    piece_ = {memory_, kUnit};
    return {&piece_, 1};
  }
  static void ask(BlockQueue& queue, const BlockRequest& request) {
    queue.submit(request);
    BlockCompletion done;
    while (queue.wait(std::span(&done, 1)) == 0) {
    }
    if (done.result <= 0) throw std::runtime_error("a lane cannot read or write");
  }
  /// A file that was never written reads as zeros without its disk.
  void fill() {
    const std::uint64_t size = std::min<std::uint64_t>(lane_->request_size().count, 1U << 20);
    auto* const bytes = static_cast<std::byte*>(std::aligned_alloc(kUnit, size));
    std::fill_n(bytes, size, std::byte{1});
    const Piece all{bytes, size};
    for (std::uint64_t at = 0; at < kSize; at += size) ask(*lane_, {Access::write, at, {&all, 1}, 0});
    std::free(bytes);
  }

  std::filesystem::path path_;
  std::unique_ptr<Tier> tier_;
  std::unique_ptr<BlockQueue> lane_;
  int descriptor_;
  std::byte* memory_;
  Piece piece_ = {};
};

inline nlohmann::json run_lane(const std::filesystem::path& folder, bool quick) {
  LaneContest contest(folder);
  std::vector<double> plain, lane, gaps;
  std::uint64_t random = 1;
  const auto time = [&](auto&& read) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t offset =
        (random >> 33) % (LaneContest::kSize / LaneContest::kUnit) * LaneContest::kUnit;
    const auto began = Timer::now();
    read(offset);
    return seconds_since(began) * 1e6;
  };
  // In turn, so that both see the same disk.
  for (int round = 0; round < 5; ++round) {
    std::vector<double> one, other;
    for (int i = 0; i < (quick ? 1000 : 5000); ++i) {
      one.push_back(time([&](std::uint64_t at) { contest.plain(at); }));
      other.push_back(time([&](std::uint64_t at) { contest.lane(at); }));
    }
    gaps.push_back(median(other) - median(one));
    plain.insert(plain.end(), one.begin(), one.end());
    lane.insert(lane.end(), other.begin(), other.end());
  }
  print_head("4 KiB past the page cache, one at a time", "| way | p50, us | p95, us | p99, us |");
  for (const auto& [name, times] : {std::pair("pread", &plain), std::pair("lane", &lane)})
    print_line(fmt::format("| {} | {:.1f} | {:.1f} | {:.1f} |", name, median(*times), quantile(*times, 0.95),
                           quantile(*times, 0.99)));
  print_line(fmt::format("a lane's median is {:.1f} us above pread's ({:.1f} to {:.1f} over 5 rounds)",
                         median(gaps), quantile(gaps, 0), quantile(gaps, 1)));
  return {{"pread_us", median(plain)},
          {"lane_us", median(lane)},
          {"gap_us", median(gaps)},
          {"gaps", spread(gaps)}};
}

}  // namespace terrace::bench
