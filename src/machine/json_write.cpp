// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "machine/json_keys.hpp"
#include "terrace/machine.hpp"

namespace terrace {
namespace {

using Json = nlohmann::ordered_json;

Json tier_json(const MachineTier& tier) {
  Json json{{"name", tier.name},
            {"capacity", tier.capacity.count},
            {"addressable", tier.addressable},
            {"read", tier.read.value},
            {"write", tier.write.value},
            {"latency", tier.latency.count()},
            {"granularity", tier.granularity.count}};
  if (tier.tiled_write) json["tiled_write"] = tier.tiled_write->value;
  if (tier.price) json["price"] = *tier.price;
  if (!tier.spec.empty()) json["spec"] = tier.spec;
  return json;
}

Json link_json(const Machine& machine, const Link& link) {
  Json rates = Json::array();
  for (const SizedRate& point : link.rates)
    rates.push_back({{"size", point.size.count}, {"rate", point.rate.value}});
  Json json{{"from", machine[link.from].name},
            {"to", machine[link.to].name},
            {"rates", std::move(rates)},
            {"both_ways", link.both_ways},
            {"compute_loss", link.compute_loss},
            {"threads", link.threads},
            {"while_computing", link.while_computing}};
  for (const ThreadedRate& one : link.by_threads)
    json["by_threads"].push_back({{"threads", one.threads},
                                  {"rate", one.rate.value},
                                  {"compute_loss", one.compute_loss},
                                  {"while_computing", one.while_computing}});
  return json;
}

Json compute_json(const Compute& compute) {
  Json json{
      {"name", compute.name}, {"threads", compute.threads}, {"flops_per_second", compute.flops_per_second}};
  for (const TypedRate& rate : compute.by_type)
    json["by_type"].push_back({{"type", to_string(rate.type)}, {"flops_per_second", rate.flops_per_second}});
  return json;
}

Json engine_json(const Machine& machine, const Engine& engine) {
  Json json = compute_json(engine.compute);
  for (const TierId tier : engine.reaches) json["reaches"].push_back(machine[tier].name);
  return json;
}

/// Keys of what most machines do not have are left out, so that their fingerprints stay as they are.
Json machine_json(const Machine& machine) {
  Json tiers = Json::array(), links = Json::array();
  for (const MachineTier& tier : machine.tiers) tiers.push_back(tier_json(tier));
  for (const Link& link : machine.links) links.push_back(link_json(machine, link));
  Json json{{"format", machine_keys::kFormat},
            {"version", machine_keys::kVersion},
            {"name", machine.name},
            {"source", machine.source},
            {"compute", compute_json(machine.compute)},
            {"tiers", std::move(tiers)},
            {"links", std::move(links)}};
  for (const Engine& engine : machine.further_engines)
    json["engines"].push_back(engine_json(machine, engine));
  return json;
}

}  // namespace

std::string to_json(const Machine& machine) {
  const auto valid = validate(machine);
  check(valid.ok(), valid.ok() ? "" : valid.error().message.c_str());
  return machine_json(machine).dump(2) + "\n";
}

}  // namespace terrace
