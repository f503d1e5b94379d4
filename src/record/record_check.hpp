// SPDX-License-Identifier: Apache-2.0
// Whether the parts of a record are those it was written with, and belong together.
#pragma once

#include <string>

#include "terrace/record.hpp"

namespace terrace {

/// What stands in the text of a record.
struct RecordFingerprints {
  std::string graph, machine, profile;
  std::string plan;  ///< empty where there is no plan
};
RecordFingerprints fingerprints_of(const Record& record);

/// Names the first part that was changed since, or is of another graph, machine or profile than the rest.
/// pre: graph and machine are valid
Result<void> check_record(const Record& record, const RecordFingerprints& written);

}  // namespace terrace
