// Claim: memory emulated at a declared rate reaches that rate in every window of 100 ms.
//
// One client copies 1 MiB at a time between plain memory and an emulated tier, as a mover does, and paces
// each copy. The last line is JSON; the ratio is achieved to declared rate, the spread its extremes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "report.hpp"
#include "terrace/tier.hpp"

namespace terrace {
namespace {

constexpr Bytes kChunk{1u << 20}, kCapacity{64u << 20};
constexpr Seconds kWindow{0.1};

struct Case {
  Access access;
  double rate;  ///< GB/s
};

std::unique_ptr<Tier> open(const Case& at) {
  return open_tier(fmt::format("emulated:{},read={}GB/s,write={}GB/s,latency=304ns", to_string(kCapacity),
                               at.rate, at.rate))
      .value();
}

enum class Paced { no, yes };

void copy_chunk(Tier& slow, Tier& fast, Access access, std::uint64_t offset, Paced paced) {
  std::byte *from = fast.memory() + offset, *to = slow.memory() + offset;
  if (access == Access::read) std::swap(from, to);
  const auto start = steady_clock().now();
  std::memcpy(to, from, kChunk.count);
  if (paced == Paced::yes) slow.pace(access, kChunk, steady_clock().now() - start);
}

struct Window {
  BytesPerSecond paced, plain;
};

// Copies for `length` and then finishes the last chunk.
BytesPerSecond copy_for(Seconds length, Tier& slow, Tier& fast, Access access, Paced paced) {
  const auto start = steady_clock().now();
  Bytes moved;
  Seconds took{0};
  for (; took < length; took = steady_clock().now() - start) {
    copy_chunk(slow, fast, access, moved.count % kCapacity.count, paced);
    moved += kChunk;
  }
  return moved / took;
}

std::vector<Window> measure(const Case& at, Tier& fast, int count) {
  const auto slow = open(at);
  std::vector<Window> windows;
  for (int i = 0; i < count; ++i) {
    const BytesPerSecond plain = copy_for(kWindow / 2, *slow, fast, at.access, Paced::no);
    copy_for(kWindow / 5, *slow, fast, at.access,
             Paced::yes);  // uses up the credit of the time that was not paced
    windows.push_back({copy_for(kWindow, *slow, fast, at.access, Paced::yes), plain});
  }
  return windows;
}

struct Summary {
  double least, median, most;
};

Summary summarize(const std::vector<Window>& windows, BytesPerSecond Window::*which, double unit) {
  std::vector<double> values;
  for (const Window& window : windows) values.push_back((window.*which).value / unit);
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

bool same_bytes(Tier& fast) {
  const auto slow = open({Access::write, 100});
  for (std::uint64_t i = 0; i < kChunk.count; ++i) fast.memory()[i] = static_cast<std::byte>(i * 7);
  copy_chunk(*slow, fast, Access::write, 0, Paced::yes);
  return std::memcmp(slow->memory(), fast.memory(), kChunk.count) == 0;
}

nlohmann::json run(bool quick) {
  const auto fast = open_tier("dram:" + to_string(kCapacity)).value();
  nlohmann::json details;
  std::optional<Summary> worst;
  for (const Case& at : {Case{Access::read, 1}, Case{Access::read, 4}, Case{Access::read, 8},
                         Case{Access::write, 1}, Case{Access::write, 3}}) {
    const auto windows = measure(at, *fast, quick ? 5 : 30);
    const Summary ratio = summarize(windows, &Window::paced, at.rate * 1e9);
    const double plain = summarize(windows, &Window::plain, 1e9).median;
    const bool reachable = plain > at.rate * 1.1;
    const char* const name = at.access == Access::read ? "read" : "write";
    fmt::print("{:>5} {} GB/s: median {:.3f} of declared, {:.3f} to {:.3f}; unpaced {:.1f} GB/s{}\n", name,
               at.rate, ratio.median, ratio.least, ratio.most, plain, reachable ? "" : ": out of reach");
    details.push_back({{"access", name},
                       {"declared_gb_per_s", at.rate},
                       {"unpaced_gb_per_s", plain},
                       {"reachable", reachable},
                       {"ratio", ratio.median},
                       {"spread", {ratio.least, ratio.most}}});
    if (reachable && (!worst || std::abs(ratio.median - 1) > std::abs(worst->median - 1))) worst = ratio;
  }
  nlohmann::json result{{"claim", "emulated memory holds its declared rate over 100 ms windows"},
                        {"aim", "the worst median within 5% of 1"},
                        {"ratio", nullptr},
                        {"spread", nullptr},
                        {"correct", same_bytes(*fast)},
                        {"details", details}};
  if (worst) {
    result["ratio"] = worst->median;
    result["spread"] = {worst->least, worst->most};
  }
  return result;
}

}  // namespace
}  // namespace terrace

int main(int count, char** arguments) {
  return terrace::bench::guarded_main(count, arguments, [](bool quick) {
    const auto result = terrace::run(quick);
    if (result["correct"] != true) throw std::runtime_error("the copies differ from what was copied");
    fmt::print("{}\n", result.dump());
  });
}
