// SPDX-License-Identifier: Apache-2.0
#include "profile/measure_memory.hpp"

#include <chrono>
#include <numeric>
#include <vector>

#include "base/check.hpp"
#include "base/random.hpp"
#include "math/loops.hpp"

namespace terrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLine = 64;
constexpr std::uint64_t kSteps = 200'000;

std::int64_t floats_of(Bytes area) { return static_cast<std::int64_t>(area.count / sizeof(float)); }

float* floats(Tier& tier) {
  check(tier.memory() != nullptr, "an addressable tier is measured in place");
  return reinterpret_cast<float*>(tier.memory());
}

/// Returns how long `pass` takes with what the tier charges for it.
template <class Pass>
Seconds charged_time(Tier& tier, Bytes read, Bytes written, Pass pass) {
  const auto start = Clock::now();
  pass();
  tier.charge(read, written, Clock::now() - start);
  return Clock::now() - start;
}

std::uint32_t& next_of(std::byte* memory, std::uint32_t line) {
  return *reinterpret_cast<std::uint32_t*>(memory + line * kLine);
}

/// Every line names the next one, in one circle through all of them (Sattolo).
void write_circle(std::byte* memory, std::uint32_t lines) {
  std::vector<std::uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0U);
  SplitMix random(1);
  for (std::uint32_t i = lines - 1; i > 0; --i) std::swap(order[i], order[random.below(i)]);
  for (std::uint32_t i = 0; i < lines; ++i) next_of(memory, i) = order[i];
}

}  // namespace

BytesPerSecond measure_write(Tier& tier, Bytes area) {
  float* const to = floats(tier);
  const auto pass = [=] { math::for_elements(floats_of(area), [=](std::int64_t i) { to[i] = 1; }); };
  return area / charged_time(tier, {}, area, pass);
}

BytesPerSecond measure_read(Tier& tier, Bytes area) {
  const float* const from = floats(tier);
  const std::int64_t count = floats_of(area);
  double sum = 0;
  const Seconds took = charged_time(tier, area, {}, [&] {
    sum = math::sum_over_ranges(count, [=](std::int64_t begin, std::int64_t end) {
      float part = 0;
#pragma omp simd reduction(+ : part)
      for (std::int64_t i = begin; i < end; ++i) part += from[i];
      return static_cast<double>(part);
    });
  });
  check(sum > 0, "a tier holds what was written to it");
  return area / took;
}

Seconds measure_latency(Tier& tier, Bytes area) {
  if (tier.description().latency > Seconds{0}) return tier.description().latency;
  std::byte* const memory = tier.memory();
  const auto lines = static_cast<std::uint32_t>(area.count / kLine);
  write_circle(memory, lines);
  const auto start = Clock::now();
  std::uint32_t line = 0;
  for (std::uint64_t step = 0; step < kSteps; ++step) line = next_of(memory, line);
  const Seconds took = Clock::now() - start;
  check(line < lines, "a circle stays within its lines");
  return took / kSteps;
}

}  // namespace terrace
