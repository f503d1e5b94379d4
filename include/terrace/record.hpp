// SPDX-License-Identifier: Apache-2.0
// A record: one file with all there is to know of a planned step. The graph as it was planned (scheduled, its
// kernels split where they had to be), the machine, the profile, the budget and the plan with its prediction;
// a result where the step was carried out. Whoever has the file needs nothing else to verify the plan, to
// simulate it here or on another machine, or to compare it with what other planners make of the same.
//
// Plain data. The text holds fingerprints of its parts: one that was changed by hand is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/graph.hpp"
#include "terrace/machine.hpp"
#include "terrace/plan.hpp"
#include "terrace/profile.hpp"

namespace terrace {

struct Record {
  std::string model;                  ///< as it was asked for: a name, or the file of a graph
  std::optional<std::int64_t> batch;  ///< samples per step, where the model says so
  Graph graph;
  Machine machine;
  Profile profile;
  std::vector<Bytes> budget;      ///< of each tier, that was to be planned for; a plan's own is what it needs
  Bytes peak{};                   ///< the most bytes live at once in the graph as it was asked for
  std::size_t split_kernels = 0;  ///< of that graph
  std::optional<Plan> plan;       ///< none: it was asked for and not made yet
  std::string result;             ///< the text of a JSON object with what a run measured; empty: none
  bool operator==(const Record&) const = default;
};

/// Writes the format of docs/formats/record.md; reading it gives the same record. pre: graph and machine are
/// valid, the profile and the plan were made for them, all texts are UTF-8
std::string to_json(const Record& record);
/// Fails with one sentence where the text is no record, a part is wrong or does not fit the others, or a
/// fingerprint is not that of its part.
Result<Record> record_from_json(std::string_view text);

/// The sentence begins with the path.
Result<Record> read_record(const std::filesystem::path& path);
/// Written atomically. Throws ResultError where the path cannot be written to, EnvironmentError where the
/// disk is full or fails.
void write_record(const Record& record, const std::filesystem::path& path);

}  // namespace terrace
