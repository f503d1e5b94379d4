// SPDX-License-Identifier: Apache-2.0
#include "profile/calibrate.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/check.hpp"
#include "base/memory_limit.hpp"
#include "base/system.hpp"
#include "profile/computer_name.hpp"
#include "profile/measure_links.hpp"
#include "profile/measure_memory.hpp"
#include "profile/measurements.hpp"
#include "profile/processor_use.hpp"
#include "profile/rates.hpp"
#include "profile/tier_sample.hpp"
#include "terrace/tier.hpp"

namespace terrace {
namespace {

using namespace literals;
using Tiers = std::vector<std::unique_ptr<Tier>>;

/// The size at which links are measured against each other and against kernels: large enough for the full
/// rate, small enough for many in a round.
constexpr Bytes kBusySize = 4_MiB;

void require_sense(const CalibrateOptions& options) {
  check(options.rounds > 0, "there is a round");
  check(!options.sizes.empty() && options.sizes.front().count > 0, "there is a size");
  check(std::adjacent_find(options.sizes.begin(), options.sizes.end(), std::greater_equal<>()) ==
            options.sizes.end(),
        "sizes ascend");
  check(options.sizes.back() <= options.area / 2, "the largest transfer fits into half of the area");
}

class Calibration {
 public:
  explicit Calibration(const CalibrateOptions& options)
      : options_(options), threads_(options.threads > 0 ? options.threads : probe_cores().usable()) {}

  Result<Machine> run() {
    // A tier that cannot be opened is met before anything takes time.
    if (auto opened = open_all(); !opened) return opened.error();
    count_steps();
    const ProcessorUse before = processor_use();
    if (auto computed = measure_compute(); !computed) return computed.error();
    for (std::size_t i = 0; i < tiers_.size(); ++i) measure_tier(i);
    if (tiers_.size() > 1) measure_links();
    if (const std::string why = disturbance(before, processor_use()); !why.empty())
      measured_.source += "; " + why;
    Machine machine = assemble(measured_);
    if (const auto valid = validate(machine); !valid) return valid.error();
    return machine;
  }

 private:
  void count_steps() {
    steps_ = 1 + tiers_.size() + 1;
    for (const auto& from : tiers_) {
      for (const auto& to : tiers_)
        if (from != to) steps_ += 3 + thread_counts(*from, *to).size();
    }
  }

  void next(const std::string& what) {
    options_.progress(what, static_cast<double>(done_++) / static_cast<double>(steps_));
  }

  Result<void> measure_compute() {
    next("arithmetic");
    const auto rates = measure_rates(threads_);
    if (!rates) return rates.error();
    const ComputerName name = computer_name();
    measured_.compute = {name.processor, threads_, rates->flops_per_second};
    measured_.source =
        fmt::format("measured on {:%Y-%m-%d} (UTC): medians of {} rounds on {}, Linux {}",
                    fmt::gmtime(std::time(nullptr)), options_.rounds, name.processor, name.kernel);
    return {};
  }

  Result<void> open(const TierSpec& spec) {
    const auto sample = sample_of(spec, options_.area);
    if (!sample) return sample.error();
    auto tier = open_tier(*sample);
    if (!tier) return tier.error();
    const TierDescription& description = (*tier)->description();
    measured_.tiers.push_back({spec, description.granularity, description.addressable, {}, {}, {}});
    tiers_.push_back(*std::move(tier));
    return {};
  }

  Result<void> open_all() {
    // Asked before anything is taken.
    if (auto opened = open(dram_spec()); !opened) return opened;
    for (const TierSpec& spec : options_.slow) {
      if (auto opened = open(spec); !opened) return opened;
    }
    return {};
  }

  void measure_tier(std::size_t index) {
    TierSamples& samples = measured_.tiers[index];
    next(to_string(samples.spec));
    if (!samples.addressable) return;
    Tier& tier = *tiers_[index];
    measure_write(tier, options_.area);  // touches every page
    for (unsigned round = 0; round < options_.rounds; ++round) {
      samples.write.push_back(measure_write(tier, options_.area).value);
      samples.read.push_back(measure_read(tier, options_.area).value);
    }
    samples.latency.push_back(measure_latency(tier, options_.area / 4).count());
  }

  void measure_links() {
    next("filling the tiers");
    std::vector<Tier*> borrowed;
    for (const auto& tier : tiers_) borrowed.push_back(tier.get());
    LinkBench bench(borrowed, options_.area);
    for (std::uint32_t from = 0; from < tiers_.size(); ++from) {
      for (std::uint32_t to = 0; to < tiers_.size(); ++to) {
        if (from != to) measured_.links.push_back(measure_link(bench, TierId{from}, TierId{to}));
      }
    }
    for (std::uint32_t i = 1; i < tiers_.size(); ++i) measure_block_latency(bench, TierId{i});
  }

  LinkSamples measure_link(LinkBench& bench, TierId from, TierId to) {
    const std::string name = fmt::format("{} > {}", to_string(measured_.tiers[from.index].spec.kind),
                                         to_string(measured_.tiers[to.index].spec.kind));
    const Bytes busy = busy_size();
    LinkSamples samples{from, to, {}, {}, {}, {}, bench.threads(from, to)};
    next(name);
    for (const Bytes size : options_.sizes)
      samples.times.push_back(
          {size, rounds([&] { return bench.transfer(from, to, size, options_.round).count(); })});
    next(name + ", both ways");
    samples.both_ways = rounds([&] { return bench.both_ways(from, to, busy, 2 * options_.round); });
    next(name + ", beside kernels");
    for (unsigned round = 0; round < options_.rounds; ++round) {
      const LinkBench::Shares shares = bench.beside_compute(from, to, busy, 2 * options_.round);
      samples.compute.push_back(shares.compute);
      samples.while_computing.push_back(shares.link);
    }
    for (const unsigned threads : thread_counts(*tiers_[from.index], *tiers_[to.index])) {
      next(fmt::format("{}, {} threads", name, threads));
      samples.by_threads.push_back(measure_threads(bench, threads, from, to));
    }
    return samples;
  }

  ThreadedSamples measure_threads(LinkBench& bench, unsigned threads, TierId from, TierId to) const {
    ThreadedSamples samples{threads, {}, {}, {}};
    for (unsigned round = 0; round < options_.rounds; ++round) {
      const auto copying = bench.with_threads(threads, from, to, busy_size(), options_.round);
      samples.rate.push_back(copying.rate.value);
      samples.compute.push_back(copying.beside.compute);
      samples.while_computing.push_back(copying.beside.link);
    }
    return samples;
  }

  Bytes busy_size() const { return std::min(kBusySize, options_.sizes.back()); }

  /// The smallest transfer there is.
  void measure_block_latency(LinkBench& bench, TierId tier) {
    TierSamples& samples = measured_.tiers[tier.index];
    if (samples.addressable) return;
    samples.latency = rounds(
        [&] { return bench.transfer(tier, TierId{0}, samples.granularity, options_.round / 10).count(); });
  }

  template <class Round>
  Samples rounds(Round round) const {
    Samples samples(options_.rounds);
    std::generate(samples.begin(), samples.end(), round);
    return samples;
  }

  const CalibrateOptions& options_;
  const unsigned threads_;
  std::size_t steps_ = 0, done_ = 0;
  Tiers tiers_;
  Measurements measured_;
};

}  // namespace

TierSpec dram_spec() {
  const Bytes available = memory_limit().available;
  TierSpec spec;
  // The rest is for the program itself.
  spec.capacity = std::max(round_down(available - available / 10, 2_MiB), 2_MiB);
  spec.huge_pages = true;
  return spec;
}

Result<Machine> calibrate(const CalibrateOptions& options) {
  require_sense(options);
  return Calibration(options).run();
}

}  // namespace terrace
