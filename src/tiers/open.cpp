// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "terrace/tier.hpp"
#include "tiers/kinds.hpp"

namespace terrace {
namespace {

// A spec built by a program has not been parsed; printing and parsing it applies the same rules.
Result<void> validate(const TierSpec& spec) {
  const auto read = parse_tier_spec(to_string(spec));
  if (!read) return read.error();
  if (*read == spec) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("the spec sets more than {} says: {} has no such option", to_string(spec),
                           to_string(spec.kind))};
}

}  // namespace

void Tier::pace(Access, Bytes, Seconds) {}
void Tier::charge(Bytes, Bytes, Seconds, std::uint64_t) {}

Result<std::unique_ptr<Tier>> open_tier(const TierSpec& spec) {
  if (const auto valid = validate(spec); !valid) return valid.error();
  for (const TierOpener& opener : kTierOpeners) {
    if (opener.kind == spec.kind) return opener.open(spec);
  }
  return Error{ErrorCode::invalid_argument, "the spec's kind is not one of TierKind"};
}

Result<std::unique_ptr<Tier>> open_tier(std::string_view spec) {
  const auto read = parse_tier_spec(spec);
  if (!read) return read.error();
  return open_tier(*read);
}

}  // namespace terrace
