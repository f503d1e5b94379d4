// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_reader.hpp"
#include "terrace/machine.hpp"

namespace terrace {
namespace {

using namespace literals;

/// A tier spec accepts at most this much, too.
constexpr Bytes kMost = 1024_TiB * 1024;

/// A complaint says what is wrong; nothing means that all is well.
using Complaint = std::optional<std::string>;

template <class... Arguments>
Complaint complain(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  return fmt::format(text, std::forward<Arguments>(arguments)...);
}

bool is_positive(double value) { return std::isfinite(value) && value > 0; }
bool is_utf8(const std::string& text) try {
  static_cast<void>(nlohmann::json(text).dump());
  return true;
} catch (const nlohmann::json::type_error&) {
  return false;
}

Complaint in_tier_rates(const MachineTier& tier) {
  if (!is_positive(tier.read.value)) return complain("its read rate is {}, not above zero", tier.read.value);
  if (!is_positive(tier.write.value))
    return complain("its write rate is {}, not above zero", tier.write.value);
  if (tier.tiled_write && !is_positive(tier.tiled_write->value))
    return complain("its tiled write rate is {}, not above zero", tier.tiled_write->value);
  if (!std::isfinite(tier.latency.count()) || tier.latency.count() < 0)
    return complain("its latency is {} seconds, which is no time", tier.latency.count());
  if (tier.price && !(std::isfinite(*tier.price) && *tier.price >= 0))
    return complain("its price is {}, which is none", *tier.price);
  return {};
}

Complaint in_tier(const MachineTier& tier) {
  if (tier.capacity.count == 0) return "it has no capacity";
  if (tier.capacity > kMost)
    return complain("its capacity of {} is more than the {} a tier can have", to_string(tier.capacity),
                    to_string(kMost));
  if (!std::has_single_bit(tier.granularity.count))
    return complain("its granularity of {} is no power of two", to_string(tier.granularity));
  if (tier.granularity > tier.capacity)
    return complain("its granularity of {} is more than its capacity of {}", to_string(tier.granularity),
                    to_string(tier.capacity));
  if (auto wrong = in_tier_rates(tier)) return wrong;
  if (!is_utf8(tier.spec)) return "its spec is not UTF-8";
  if (tier.spec.empty()) return {};
  const auto spec = parse_tier_spec(tier.spec);
  return spec ? Complaint() : complain("its spec is wrong: {}", spec.error().message);
}

Complaint in_names(const Machine& machine) {
  for (std::size_t i = 0; i < machine.tiers.size(); ++i) {
    const std::string& name = machine.tiers[i].name;
    if (name.empty()) return complain("tiers[{}] has no name", i);
    if (!is_utf8(name)) return complain("the name of tiers[{}] is not UTF-8", i);
    for (std::size_t j = 0; j < i; ++j) {
      if (machine.tiers[j].name == name) return complain("there are two tiers named {}", in_quotes(name));
    }
  }
  return {};
}

Complaint in_tiers(const Machine& machine) {
  if (machine.tiers.empty()) return "it has no tier";
  if (auto wrong = in_names(machine)) return wrong;
  for (const MachineTier& tier : machine.tiers) {
    if (const auto wrong = in_tier(tier)) return complain("tier {}: {}", in_quotes(tier.name), *wrong);
  }
  if (!machine.tiers[0].addressable)
    return complain("tier {}: it is the fastest, so kernels must be able to use it in place (addressable)",
                    in_quotes(machine.tiers[0].name));
  return {};
}

Complaint in_rates(const std::vector<SizedRate>& rates) {
  if (rates.empty()) return "it has no rates";
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (rates[i].size.count == 0 || rates[i].size > kMost)
      return complain("rates[{}] is for transfers of {}, which is no size", i, to_string(rates[i].size));
    if (!is_positive(rates[i].rate.value))
      return complain("rates[{}] is {}, not above zero", i, rates[i].rate.value);
    if (i > 0 && rates[i].size <= rates[i - 1].size)
      return complain("the sizes of rates[{}] and rates[{}] do not ascend", i - 1, i);
  }
  return {};
}

/// Checks the figures that a link and each of its ThreadedRates share.
Complaint in_copying(const auto& copying) {
  if (!(copying.compute_loss >= 0 && copying.compute_loss <= 1))
    return complain("compute_loss is {}, not a share from 0 to 1", copying.compute_loss);
  if (copying.threads == 0) return "no thread copies";
  if (!(copying.while_computing > 0 && copying.while_computing <= 1))
    return complain("while_computing is {}, not a share above 0 and up to 1", copying.while_computing);
  return {};
}

Complaint in_threads(const std::vector<ThreadedRate>& counts) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (const auto wrong = in_copying(counts[i])) return complain("by_threads[{}]: {}", i, *wrong);
    if (!is_positive(counts[i].rate.value))
      return complain("by_threads[{}]: its rate is {}, not above zero", i, counts[i].rate.value);
    if (i > 0 && counts[i].threads <= counts[i - 1].threads)
      return complain("the threads of by_threads[{}] and by_threads[{}] do not ascend", i - 1, i);
  }
  return {};
}

Complaint in_link(const Link& link) {
  if (auto wrong = in_rates(link.rates)) return wrong;
  if (!(link.both_ways > 0 && link.both_ways <= 1))
    return complain("both_ways is {}, not a share above 0 and up to 1", link.both_ways);
  if (auto wrong = in_copying(link)) return wrong;
  return in_threads(link.by_threads);
}

Complaint in_links(const Machine& machine) {
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const Link& link = machine.links[i];
    for (const TierId end : {link.from, link.to}) {
      if (end.index >= machine.tiers.size())
        return complain("links[{}] leads to tier {} of {}", i, end.index, machine.tiers.size());
    }
    const std::string name =
        fmt::format("from {} to {}", in_quotes(machine[link.from].name), in_quotes(machine[link.to].name));
    if (link.from == link.to) return complain("the link {} leads nowhere else", name);
    if (machine.link(link.from, link.to) != &link) return complain("there are two links {}", name);
    if (const auto wrong = in_link(link)) return complain("the link {}: {}", name, *wrong);
  }
  return {};
}

Complaint in_compute(const Compute& compute) {
  if (!is_utf8(compute.name)) return "the processor's name is not UTF-8";
  if (compute.threads == 0) return "no thread computes";
  if (!is_positive(compute.flops_per_second))
    return complain("compute.flops_per_second is {}, not above zero", compute.flops_per_second);
  return {};
}

Complaint in_typed_rates(const Compute& compute) {
  for (std::size_t i = 0; i < compute.by_type.size(); ++i) {
    const TypedRate& rate = compute.by_type[i];
    if (!is_positive(rate.flops_per_second))
      return complain("its rate for {} is {}, not above zero", to_string(rate.type), rate.flops_per_second);
    if (rate.type == DataType::f32) return "its rate for f32 is flops_per_second, and not one of by_type";
    for (std::size_t j = 0; j < i; ++j) {
      if (compute.by_type[j].type == rate.type)
        return complain("it has two rates for {}", to_string(rate.type));
    }
  }
  return {};
}

Complaint in_reach(const Machine& machine, const Engine& engine) {
  if (engine.reaches.empty()) return "it reaches no tier";
  for (std::size_t i = 0; i < engine.reaches.size(); ++i) {
    if (engine.reaches[i].index >= machine.tiers.size())
      return complain("it reaches tier {} of {}", engine.reaches[i].index, machine.tiers.size());
    if (i > 0 && engine.reaches[i] <= engine.reaches[i - 1])
      return "the tiers it reaches are not in the machine's order, each once";
  }
  return {};
}

Complaint in_engine_name(const Machine& machine, std::uint32_t number) {
  const std::string& name = machine.compute_of({number}).name;
  if (name.empty()) return complain("engine {} has no name", number);
  for (std::uint32_t i = 0; i < number; ++i) {
    if (machine.compute_of({i}).name == name)
      return complain("there are two engines named {}", in_quotes(name));
  }
  return {};
}

Complaint in_engines(const Machine& machine) {
  if (auto wrong = in_compute(machine.compute)) return wrong;
  if (const auto wrong = in_typed_rates(machine.compute)) return complain("compute: {}", *wrong);
  for (std::uint32_t i = 0; i < machine.further_engines.size(); ++i) {
    const Engine& engine = machine.further_engines[i];
    if (const auto wrong = in_compute(engine.compute)) return complain("engine {}: {}", i + 1, *wrong);
    if (auto wrong = in_engine_name(machine, i + 1)) return wrong;
    auto wrong = in_typed_rates(engine.compute);
    if (!wrong) wrong = in_reach(machine, engine);
    if (wrong) return complain("engine {}: {}", in_quotes(engine.compute.name), *wrong);
  }
  return {};
}

Complaint in_machine(const Machine& machine) {
  if (!is_utf8(machine.name) || !is_utf8(machine.source)) return "its name or source is not UTF-8";
  if (auto wrong = in_tiers(machine)) return wrong;
  if (auto wrong = in_links(machine)) return wrong;
  return in_engines(machine);
}

}  // namespace

Result<void> validate(const Machine& machine) {
  const auto wrong = in_machine(machine);
  if (!wrong) return {};
  const std::string name =
      machine.name.empty() || !is_utf8(machine.name) ? "" : " " + in_quotes(machine.name);
  return Error{ErrorCode::invalid_argument, fmt::format("the machine{} is none: {}", name, *wrong)};
}

}  // namespace terrace
