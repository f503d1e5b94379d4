// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/json_reader.hpp"
#include "machine/json_keys.hpp"
#include "terrace/machine.hpp"

namespace terrace {
namespace {

/// Reads a plain number, or text with a unit in files that are written by hand.
template <class Value, class Number, class Parse>
void read_quantity(const JsonValue& json, Value& value, Number number, Parse parse) {
  if (!json.json().is_string()) {
    value = number();
    return;
  }
  const auto parsed = parse(json.text());
  if (!parsed) json.fail(parsed.error().message);
  value = *parsed;
}

void read(const JsonValue& json, std::string& value) { value = json.text(); }
void read(const JsonValue& json, bool& value) { value = json.flag(); }
void read(const JsonValue& json, double& value) { value = json.number(); }
void read(const JsonValue& json, unsigned& value) {
  value = static_cast<unsigned>(json.integer(1, std::numeric_limits<unsigned>::max()));
}
void read(const JsonValue& json, Bytes& value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto number = [&] { return Bytes{static_cast<std::uint64_t>(json.integer(0, kMost))}; };
  read_quantity(json, value, number, parse_bytes);
}
void read(const JsonValue& json, BytesPerSecond& value) {
  read_quantity(
      json, value, [&] { return BytesPerSecond{json.number()}; }, parse_rate);
}
void read(const JsonValue& json, Seconds& value) {
  read_quantity(
      json, value, [&] { return Seconds{json.number()}; }, parse_time);
}
void read(const JsonValue& json, std::optional<double>& value) { value = json.number(); }

/// Reads an optional key; without it the value stays as it is.
template <class Value>
void read_if(const JsonObject& object, std::string_view key, Value& value) {
  if (const auto found = object.find(key)) read(*found, value);
}

MachineTier read_tier(const JsonValue& json) {
  const JsonObject object(json, machine_keys::kTier);
  MachineTier tier;
  read(object.need("name"), tier.name);
  read(object.need("capacity"), tier.capacity);
  read_if(object, "addressable", tier.addressable);
  read(object.need("read"), tier.read);
  read(object.need("write"), tier.write);
  if (const auto tiled = object.find("tiled_write")) read(*tiled, tier.tiled_write.emplace());
  read_if(object, "latency", tier.latency);
  read_if(object, "granularity", tier.granularity);
  read_if(object, "price", tier.price);
  read_if(object, "spec", tier.spec);
  return tier;
}

SizedRate read_rate(const JsonValue& json) {
  const JsonObject object(json, machine_keys::kRate);
  SizedRate point;
  read(object.need("size"), point.size);
  read(object.need("rate"), point.rate);
  return point;
}

ThreadedRate read_threaded(const JsonValue& json) {
  const JsonObject object(json, machine_keys::kThreaded);
  ThreadedRate one;
  read(object.need("threads"), one.threads);
  read(object.need("rate"), one.rate);
  read_if(object, "compute_loss", one.compute_loss);
  read_if(object, "while_computing", one.while_computing);
  return one;
}

TierId tier_named(const Machine& machine, const JsonValue& json) {
  for (std::uint32_t i = 0; i < machine.tiers.size(); ++i) {
    if (machine.tiers[i].name == json.text()) return TierId{i};
  }
  json.fail(fmt::format("there is no tier named {}", in_quotes(json.text())));
}

Link read_link(const Machine& machine, const JsonValue& json) {
  const JsonObject object(json, machine_keys::kLink);
  Link link;
  link.from = tier_named(machine, object.need("from"));
  link.to = tier_named(machine, object.need("to"));
  link.rates = read_list(object.need("rates"), read_rate);
  read_if(object, "both_ways", link.both_ways);
  read_if(object, "compute_loss", link.compute_loss);
  read_if(object, "threads", link.threads);
  read_if(object, "while_computing", link.while_computing);
  if (const auto counts = object.find("by_threads")) link.by_threads = read_list(*counts, read_threaded);
  return link;
}

TypedRate read_typed_rate(const JsonValue& json) {
  const JsonObject object(json, machine_keys::kTypedRate);
  const JsonValue type = object.need("type");
  for (int i = 0; i <= static_cast<int>(DataType::i64); ++i) {
    const auto known = static_cast<DataType>(i);
    if (to_string(known) == type.text()) return {known, object.need("flops_per_second").number()};
  }
  type.fail(fmt::format("{} is not the name of a type", in_quotes(type.text())));
}

Compute read_compute(const JsonObject& object) {
  Compute compute;
  read_if(object, "name", compute.name);
  read_if(object, "threads", compute.threads);
  read(object.need("flops_per_second"), compute.flops_per_second);
  if (const auto rates = object.find("by_type")) compute.by_type = read_list(*rates, read_typed_rate);
  return compute;
}

Engine read_engine(const Machine& machine, const JsonValue& json) {
  const JsonObject object(json, machine_keys::kEngine);
  Engine engine{read_compute(object), {}};
  engine.reaches =
      read_list(object.need("reaches"), [&](const JsonValue& tier) { return tier_named(machine, tier); });
  std::sort(engine.reaches.begin(), engine.reaches.end());
  return engine;
}

Machine read_machine_value(const JsonValue& json) {
  const JsonObject object =
      open_format(json, {"machine", machine_keys::kFormat, machine_keys::kVersion}, machine_keys::kMachine);
  Machine machine;
  read_if(object, "name", machine.name);
  read_if(object, "source", machine.source);
  machine.compute = read_compute(JsonObject(object.need("compute"), machine_keys::kCompute));
  machine.tiers = read_list(object.need("tiers"), read_tier);
  if (const auto links = object.find("links"))
    machine.links = read_list(*links, [&](const JsonValue& link) { return read_link(machine, link); });
  if (const auto engines = object.find("engines"))
    machine.further_engines =
        read_list(*engines, [&](const JsonValue& engine) { return read_engine(machine, engine); });
  return machine;
}

}  // namespace

Result<Machine> machine_from_json(std::string_view text) {
  return read_json(text, "machine", [](const JsonValue& json) {
    Machine machine = read_machine_value(json);
    refuse_unless(validate(machine));
    return machine;
  });
}

}  // namespace terrace
