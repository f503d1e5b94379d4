// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/json_reader.hpp"
#include "profile/profile_keys.hpp"
#include "profile/roofline.hpp"
#include "terrace/profile_json.hpp"

namespace terrace {
namespace {

std::uint32_t index(const JsonValue& json) {
  return static_cast<std::uint32_t>(json.integer(0, std::numeric_limits<std::uint32_t>::max()));
}

double amount(const JsonValue& json) {
  const double value = json.number();
  if (value < 0) json.fail(fmt::format("a number not below zero is wanted, not {}", value));
  return value == 0 ? 0 : value;  // Without its sign zero has one text.
}

PlacedTime read_placed(const JsonValue& json) {
  const std::size_t size = json.size();
  if (size != 2 && size != 5)
    json.fail("[[tiers], seconds] or [[tiers], cold, warm, spread, samples] is wanted");
  PlacedTime placed;
  placed.tiers = read_list(json[0], [](const JsonValue& tier) { return TierId{index(tier)}; });
  placed.cold = placed.warm = Seconds{amount(json[1])};
  if (size == 2) return placed;
  placed.warm = Seconds{amount(json[2])};
  placed.spread = Seconds{amount(json[3])};
  placed.samples = index(json[4]);
  return placed;
}

Accesses read_accesses(const JsonValue& json) {
  if (json.size() != 3) json.fail("[reads, writes, pages] is wanted");
  return {amount(json[0]), amount(json[1]),
          static_cast<std::uint64_t>(json[2].integer(0, std::numeric_limits<std::int64_t>::max()))};
}

KernelProfile read_kernel(const JsonValue& json) {
  const JsonObject object(json, profile_keys::kKernel);
  KernelProfile kernel;
  kernel.variants =
      read_list(object.need("times"), [](const JsonValue& places) { return read_list(places, read_placed); });
  if (const auto accesses = object.find("accesses")) kernel.operands = read_list(*accesses, read_accesses);
  return kernel;
}

Profile read(const JsonValue& json) {
  const JsonObject object =
      open_format(json, {"profile", profile_keys::kFormat, profile_keys::kVersion}, profile_keys::kProfile);
  return {object.need("graph").text(), object.need("machine").text(),
          read_list(object.need("kernels"), read_kernel)};
}

/// Returns what is wrong with the times of one variant, or an empty text.
std::string wrong_places(const std::vector<PlacedTime>& places, std::size_t operands, std::size_t tiers) {
  if (places.empty()) return "a variant has no time";
  for (const PlacedTime& placed : places) {
    if (placed.tiers.size() != operands)
      return fmt::format("a time names {} tiers for {} operands", placed.tiers.size(), operands);
    for (const TierId tier : placed.tiers) {
      if (tier.index >= tiers) return fmt::format("a time names tier {} of {}", tier.index, tiers);
    }
  }
  const auto& first = places.front().tiers;
  const bool in_tier_0 =
      std::all_of(first.begin(), first.end(), [](TierId tier) { return tier == TierId{0}; });
  return in_tier_0 ? "" : "the first time of a variant has all operands in tier 0";
}

std::string wrong_kernel(const KernelProfile& profile, const Kernel& kernel, std::size_t tiers) {
  const std::size_t operands = operand_count(kernel);
  if (profile.variants.size() != variant_count(kernel))
    return fmt::format("there are times of {} variants and not of {}", profile.variants.size(),
                       variant_count(kernel));
  for (const auto& places : profile.variants) {
    if (std::string wrong = wrong_places(places, operands, tiers); !wrong.empty()) return wrong;
  }
  if (!profile.operands.empty() && profile.operands.size() != operands)
    return fmt::format("there are accesses of {} operands and not of {}", profile.operands.size(), operands);
  return {};
}

}  // namespace

Result<Profile> profile_from_json(std::string_view text) { return read_json(text, "profile", read); }

Result<void> validate(const Profile& profile, const Graph& graph, const Machine& machine) {
  if (profile.kernels.size() != graph.kernels.size()) {
    return Error{ErrorCode::invalid_argument, fmt::format("the profile has {} kernels and the graph {}",
                                                          profile.kernels.size(), graph.kernels.size())};
  }
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    const std::string wrong = wrong_kernel(profile.kernels[i], graph.kernels[i], machine.tiers.size());
    if (wrong.empty()) continue;
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the profile of kernel {} does not fit: {}", graph.kernels[i].name, wrong)};
  }
  return {};
}

}  // namespace terrace
