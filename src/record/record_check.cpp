// SPDX-License-Identifier: Apache-2.0
#include "record/record_check.hpp"

#include <fmt/format.h>

#include "terrace/profile_json.hpp"

namespace terrace {
namespace {

Error invalid(std::string sentence) { return {ErrorCode::invalid_argument, std::move(sentence)}; }

Result<void> same(std::string_view part, const std::string& written, const std::string& found) {
  if (written == found) return {};
  return invalid(fmt::format("the {} was changed after the record was written (fingerprint {}, and {} was "
                             "written): plan again",
                             part, found, written.empty() ? "none" : written));
}

Result<void> made_for(std::string_view part, std::string_view other, const std::string& named,
                      const std::string& here) {
  if (named == here) return {};
  return invalid(fmt::format("the {} was made for another {} than the record's: plan again", part, other));
}

Result<void> check_budget(const Record& record) {
  const auto& tiers = record.machine.tiers;
  if (record.budget.size() != tiers.size()) {
    return invalid(fmt::format("budget: one amount for each of {} tiers is wanted, not {}", tiers.size(),
                               record.budget.size()));
  }
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    if (record.budget[i] > tiers[i].capacity)
      return invalid(fmt::format("budget[{}]: tier {} has no {}", i, tiers[i].name, readable(record.budget[i])));
  }
  return {};
}

}  // namespace

RecordFingerprints fingerprints_of(const Record& record) {
  return {fingerprint(record.graph), fingerprint(record.machine), fingerprint(record.profile),
          record.plan ? fingerprint(*record.plan) : ""};
}

Result<void> check_record(const Record& record, const RecordFingerprints& written) {
  const RecordFingerprints here = fingerprints_of(record);
  for (const auto& checked :
       {same("graph", written.graph, here.graph), same("machine", written.machine, here.machine),
        same("profile", written.profile, here.profile), same("plan", written.plan, here.plan),
        made_for("profile", "graph", record.profile.graph, here.graph),
        made_for("profile", "machine", record.profile.machine, here.machine),
        validate(record.profile, record.graph, record.machine), check_budget(record)}) {
    if (!checked) return checked;
  }
  if (!record.plan) return {};
  for (const auto& checked : {made_for("plan", "graph", record.plan->graph, here.graph),
                              made_for("plan", "machine", record.plan->machine, here.machine),
                              made_for("plan", "profile", record.plan->profile, here.profile)}) {
    if (!checked) return checked;
  }
  return {};
}

}  // namespace terrace
