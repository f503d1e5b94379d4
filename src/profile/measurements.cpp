// SPDX-License-Identifier: Apache-2.0
#include "profile/measurements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace terrace {
namespace {

using namespace literals;

constexpr Bytes kPage = 4_KiB;
/// A link that is all but stopped by its opposite still moves: its share is never zero.
constexpr double kLeastShare = 0.01;

std::vector<SizedRate> rates_of(const std::vector<SizedSamples>& times) {
  std::vector<SizedRate> rates;
  double longest = 0;
  for (const SizedSamples& sized : times) {
    longest = std::max(longest, lower_quartile(sized.seconds));
    rates.push_back({sized.size, sized.size / Seconds{longest}});
  }
  return rates;
}

double loss_of(const Samples& compute) { return std::clamp(1 - median(compute), 0.0, 1.0); }
double share_of(const Samples& shares) { return std::clamp(median(shares), kLeastShare, 1.0); }

Link link_of(const LinkSamples& samples) {
  Link link{samples.from,
            samples.to,
            rates_of(samples.times),
            share_of(samples.both_ways),
            loss_of(samples.compute),
            samples.threads,
            share_of(samples.while_computing)};
  for (const ThreadedSamples& one : samples.by_threads)
    link.by_threads.push_back(
        {one.threads, {median(one.rate)}, loss_of(one.compute), share_of(one.while_computing)});
  return link;
}

MachineTier tier_of(const TierSamples& samples) {
  MachineTier tier;
  tier.name = to_string(samples.spec.kind);
  tier.capacity = round_down(samples.spec.capacity, samples.granularity);
  tier.addressable = samples.addressable;
  tier.latency = Seconds{median(samples.latency)};
  tier.granularity = samples.granularity;
  tier.spec = to_string(samples.spec);
  if (samples.addressable) {
    tier.read = {median(samples.read)};
    tier.write = {median(samples.write)};
  }
  return tier;
}

/// `file`, `file2`, `file3`
void make_names_unique(std::vector<MachineTier>& tiers) {
  for (auto tier = tiers.begin(); tier != tiers.end(); ++tier) {
    const std::string name = tier->name;
    const auto is_taken = [&] {
      return std::any_of(tiers.begin(), tier,
                         [&](const MachineTier& other) { return other.name == tier->name; });
    };
    for (int number = 2; is_taken(); ++number) tier->name = fmt::format("{}{}", name, number);
  }
}

BytesPerSecond largest_rate(const Machine& machine, TierId from, TierId to) {
  const Link* link = machine.link(from, to);
  check(link != nullptr, "a tier that is not addressable is linked with the first one");
  return link->rates.back().rate;
}

void rate_by_links(Machine& machine, const std::vector<TierSamples>& samples) {
  for (std::uint32_t i = 1; i < machine.tiers.size(); ++i) {
    MachineTier& tier = machine.tiers[i];
    if (tier.addressable) continue;
    tier.read = largest_rate(machine, TierId{i}, TierId{0});
    tier.write = largest_rate(machine, TierId{0}, TierId{i});
    if (samples[i].spec.kind == TierKind::pinned) continue;  // it is memory, and has no blocks
    MachineTier& fast = machine.tiers[0];
    fast.granularity = std::max({fast.granularity, kPage, tier.granularity});
  }
  machine.tiers[0].capacity = round_down(machine.tiers[0].capacity, machine.tiers[0].granularity);
}

}  // namespace

double lower_quartile(Samples samples) {
  check(!samples.empty(), "a quartile is of something");
  const auto quarter = samples.begin() + static_cast<std::ptrdiff_t>((samples.size() - 1) / 4);
  std::nth_element(samples.begin(), quarter, samples.end());
  return *quarter;
}

Machine assemble(const Measurements& measured) {
  Machine machine;
  machine.name = "this";
  machine.source = measured.source;
  machine.compute = measured.compute;
  for (const TierSamples& tier : measured.tiers) machine.tiers.push_back(tier_of(tier));
  for (const LinkSamples& link : measured.links) machine.links.push_back(link_of(link));
  make_names_unique(machine.tiers);
  rate_by_links(machine, measured.tiers);
  return machine;
}

}  // namespace terrace
