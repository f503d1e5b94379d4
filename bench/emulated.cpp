// Claim: memory emulated at a declared rate is that fast, in every window of 100 ms.
//
// One client copies 1 MiB at a time between plain memory and an emulated tier, as a mover does, and paces
// each copy. The last line is JSON; the ratio is achieved to declared rate, the spread its extremes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "terrace/tier.hpp"

namespace terrace {
namespace {

using namespace literals;

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

void copy_chunk(Tier& slow, Tier& fast, Access access, std::uint64_t offset) {
  std::byte *from = fast.memory() + offset, *to = slow.memory() + offset;
  if (access == Access::read) std::swap(from, to);
  std::memcpy(to, from, kChunk.count);
  slow.pace(access, kChunk);
}

// Achieved over declared rate, window by window. A window ends with the first chunk that ends after it.
std::vector<double> measure(const Case& at, Tier& fast, int windows) {
  const auto slow = open(at);
  std::vector<double> ratios;
  std::uint64_t offset = 0;
  const auto next = [&] {
    copy_chunk(*slow, fast, at.access, offset);
    offset = (offset + kChunk.count) % kCapacity.count;
  };
  for (int i = 0; i < 20; ++i) next();  // warms up, and spends the credit of the idle time before
  for (int i = 0; i < windows; ++i) {
    const auto start = steady_clock().now();
    Bytes moved;
    Seconds took{0};
    for (; took < kWindow; took = steady_clock().now() - start) {
      next();
      moved += kChunk;
    }
    ratios.push_back((moved / took).value / (at.rate * 1e9));
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

bool same_bytes(Tier& fast) {
  const auto slow = open({Access::write, 100});
  for (std::uint64_t i = 0; i < kChunk.count; ++i) fast.memory()[i] = static_cast<std::byte>(i * 7);
  copy_chunk(*slow, fast, Access::write, 0);
  return std::memcmp(slow->memory(), fast.memory(), kChunk.count) == 0;
}

nlohmann::json run(bool quick) {
  const auto fast = open_tier("dram:" + to_string(kCapacity)).value();
  nlohmann::json result{{"claim", "emulated memory holds its declared rate over 100 ms windows"},
                        {"aim", "each median within 5% of 1"},
                        {"correct", same_bytes(*fast)}};
  std::vector<double> all;
  double worst = 1;
  for (const Case& at : {Case{Access::read, 1}, Case{Access::read, 4}, Case{Access::read, 8},
                         Case{Access::write, 1}, Case{Access::write, 3}}) {
    const auto ratios = measure(at, *fast, quick ? 5 : 30);
    const double median = ratios[ratios.size() / 2];
    const char* const name = at.access == Access::read ? "read" : "write";
    fmt::print("{:>5} {} GB/s: median {:.3f} of declared, {:.3f} to {:.3f}\n", name, at.rate, median,
               ratios.front(), ratios.back());
    result["details"].push_back({{"access", name},
                                 {"declared_gb_per_s", at.rate},
                                 {"ratio", median},
                                 {"spread", {ratios.front(), ratios.back()}}});
    if (std::abs(median - 1) > std::abs(worst - 1)) worst = median;
    all.insert(all.end(), ratios.begin(), ratios.end());
  }
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  result["ratio"] = worst;
  result["spread"] = {*least, *most};
  return result;
}

}  // namespace
}  // namespace terrace

int main(int count, char** arguments) {
  const bool quick = count > 1 && std::string_view(arguments[1]) == "--quick";
  const auto result = terrace::run(quick);
  fmt::print("{}\n", result.dump());
  return result["correct"] == true ? 0 : 1;
}
