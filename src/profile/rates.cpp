// SPDX-License-Identifier: Apache-2.0
#include "profile/rates.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/check.hpp"
#include "math/loops.hpp"
#include "terrace/tier.hpp"

namespace terrace {
namespace {

using namespace literals;
using Clock = std::chrono::steady_clock;

/// Enough chains for two units with five stages, few enough for the sixteen registers of older processors.
constexpr int kChains = 12;

/// A vector register of each level.
struct Sse {
  using Vector [[gnu::vector_size(16)]] = float;
};
struct Avx2 {
  using Vector [[gnu::vector_size(32)]] = float;
};
struct Avx512 {
  using Vector [[gnu::vector_size(64)]] = float;
};

/// Runs `end - begin` fused multiply-adds in each chain of vectors. Their values stay near one.
template <class Register>
struct MultiplyAdd {
  using Vector = typename Register::Vector;
  float factor, summand;

  float operator()(std::int64_t begin, std::int64_t end) const {
    Vector chains[kChains];
    for (int c = 0; c < kChains; ++c) chains[c] = Vector{} + static_cast<float>(c);
    const Vector scale = Vector{} + factor, shift = Vector{} + summand;
    for (std::int64_t round = begin; round < end; ++round) {
#pragma GCC unroll 16
      for (Vector& chain : chains) chain = chain * scale + shift;
    }
    Vector sum{};
    for (const Vector& chain : chains) sum += chain;
    return sum[0];
  }
};

template <class Work>
Seconds time_of(Work work) {
  const auto start = Clock::now();
  work();
  return Clock::now() - start;
}

template <class Work>
Seconds best_time(int rounds, Work work) {
  Seconds best = time_of(work);
  for (int i = 1; i < rounds; ++i) best = std::min(best, time_of(work));
  return best;
}

/// All threads at once.
template <class Register>
double measure_arithmetic(math::Level level, std::int64_t threads) {
  constexpr std::int64_t kRounds = 1 << 22;
  constexpr std::int64_t kLanes = sizeof(typename Register::Vector) / sizeof(float);
  constexpr double kFlops = 2.0 * kChains * kLanes * kRounds;
  // The results must go somewhere, or there would be nothing to compute: to a cache line for each thread.
  constexpr std::int64_t kLine = 16;
  std::vector<float> sinks(static_cast<std::size_t>(threads * kLine));
  const Seconds best = best_time(5, [&] {
    math::for_pieces(threads, [=, &sinks](std::int64_t piece) {
      sinks[static_cast<std::size_t>(piece * kLine)] =
          math::run_at(level, MultiplyAdd<Register>{0.5F, 0.5F}, 0, kRounds);
    });
  });
  return kFlops * static_cast<double>(threads) / best.count();
}

double measure_arithmetic(std::int64_t threads) {
  switch (const math::Level level = math::level()) {
    case math::Level::avx512:
      return measure_arithmetic<Avx512>(level, threads);
    case math::Level::avx2:
      return measure_arithmetic<Avx2>(level, threads);
    case math::Level::baseline:
      break;
  }
  return measure_arithmetic<Sse>(math::Level::baseline, threads);
}

Result<BytesPerSecond> measure_bandwidth() {
  // Several times the last cache of today's processors, and still touched in a fraction of a second.
  constexpr Bytes kArray = 128_MiB;
  constexpr std::int64_t kElements = kArray.count / sizeof(float);
  TierSpec spec;
  spec.capacity = 3 * kArray;
  spec.huge_pages = true;
  auto memory = open_tier(spec);
  if (!memory) return memory.error();
  auto* a = reinterpret_cast<float*>((*memory)->memory());
  float *b = a + kElements, *c = b + kElements;
  const auto fill = [](float* to, float value) {
    math::for_elements(kElements, [=](std::int64_t i) { to[i] = value; });
  };
  fill(a, 0), fill(b, 1), fill(c, 2);
  const Seconds best =
      best_time(4, [=] { math::for_elements(kElements, [=](std::int64_t i) { a[i] = b[i] + 3 * c[i]; }); });
  check(a[0] == 7 && a[kElements - 1] == 7, "a triad has the right result");
  return 3 * kArray / best;
}

}  // namespace

Seconds Rates::bound(double flops, Bytes bytes) const {
  return std::max(Seconds{flops / flops_per_second}, bytes / bandwidth);
}

Result<Rates> measure_rates(unsigned threads) {
  check(threads > 0, "at least one thread measures");
  math::set_team_size(threads);
  const auto bandwidth = measure_bandwidth();
  if (!bandwidth) return bandwidth.error();
  return Rates{measure_arithmetic(threads), *bandwidth};
}

}  // namespace terrace
