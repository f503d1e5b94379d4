// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "base/text_file.hpp"
#include "record/record_check.hpp"
#include "record/record_keys.hpp"
#include "terrace/graph_json.hpp"
#include "terrace/profile_json.hpp"

namespace terrace {
namespace {

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    check(false, "the names of a record that is written are UTF-8");
    throw;
  }
}

std::string fingerprints(const Record& record) {
  const RecordFingerprints of = fingerprints_of(record);
  return fmt::format(R"("graph":"{}","machine":"{}","profile":"{}"{})", of.graph, of.machine, of.profile,
                     record.plan ? fmt::format(R"(,"plan":"{}")", of.plan) : "");
}

}  // namespace

std::string to_json(const Record& record) {
  std::string text = fmt::format("{{\"format\":\"{}\",\"version\":{},\n\"model\":{},", record_keys::kFormat,
                                 record_keys::kVersion, quoted(record.model));
  if (record.batch) text += fmt::format("\"batch\":{},", *record.batch);
  std::vector<std::uint64_t> budget;
  for (const Bytes bytes : record.budget) budget.push_back(bytes.count);
  text += fmt::format("\"budget\":[{}],\"peak\":{},\"split_kernels\":{},\n\"fingerprints\":{{{}}},\n",
                      fmt::join(budget, ","), record.peak.count, record.split_kernels, fingerprints(record));
  text += "\"graph\":" + to_json_text(record.graph);
  text += ",\"machine\":" + to_json(record.machine);
  text += ",\"profile\":" + to_json(record.profile);
  if (record.plan) text += ",\"plan\":" + to_json(*record.plan);
  if (!record.result.empty()) text += ",\"result\":" + record.result + "\n";
  return text + "}\n";
}

void write_record(const Record& record, const std::filesystem::path& path) {
  write_text(path, to_json(record));
}

}  // namespace terrace
