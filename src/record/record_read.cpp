// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/json_reader.hpp"
#include "base/text_file.hpp"
#include "record/json_parts.hpp"
#include "record/record_check.hpp"
#include "record/record_keys.hpp"
#include "terrace/graph_json.hpp"
#include "terrace/profile_json.hpp"

namespace terrace {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// A record's text in parts. Whatever is wrong leaves as a JsonError.
class Parts {
 public:
  explicit Parts(std::string_view text) {
    const auto parts = json_parts(text);
    if (!parts) throw JsonError("the text is no JSON object");
    for (const JsonPart& part : *parts) {
      if (!parts_.emplace(part.key, part.value).second)
        throw JsonError(fmt::format("the key {} stands twice in one object", in_quotes(part.key)));
    }
  }

  bool has(std::string_view key) const { return parts_.contains(key); }
  std::string_view need(std::string_view key) const {
    const auto found = parts_.find(key);
    if (found == parts_.end()) throw JsonError(fmt::format("the key '{}' is missing", key));
    return found->second;
  }

  /// A value that is no text of another format.
  template <class Read>
  auto value(std::string_view key, Read read) const {
    const nlohmann::json json = parse_json(need(key));
    return read(JsonValue(json, std::string(key)));
  }

  /// A value that its own reader reads. Its sentence says what it could not read.
  template <class Read>
  auto part(std::string_view key, Read read) const {
    auto made = read(need(key));
    if (!made) throw JsonError(fmt::format("{}: {}", key, made.error().message));
    return *std::move(made);
  }

  /// Another format or version may have other keys: those two are looked at first.
  void check_keys() const {
    if (!has("format") || need("format") != fmt::format("\"{}\"", record_keys::kFormat))
      throw JsonError(fmt::format("this is no record: the key 'format' must be '{}'", record_keys::kFormat));
    if (!has("version") || need("version") != std::to_string(record_keys::kVersion))
      throw JsonError(
          fmt::format("the key 'version' must be {}, the one this build reads", record_keys::kVersion));
    const auto& known = record_keys::kRecord;
    for (const auto& [key, text] : parts_) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        throw JsonError(fmt::format("unknown key {}; there are {}", in_quotes(key), fmt::join(known, ", ")));
    }
  }

 private:
  std::map<std::string_view, std::string_view> parts_;
};

std::int64_t count(const JsonValue& json) { return json.integer(0, kMost); }
std::uint64_t amount(const JsonValue& json) { return static_cast<std::uint64_t>(count(json)); }
std::string text(const JsonValue& json) { return json.text(); }

std::vector<Bytes> read_budget(const JsonValue& json) {
  return read_list(json, [](const JsonValue& bytes) { return Bytes{amount(bytes)}; });
}

int require_object(const JsonValue& json) {
  if (!json.json().is_object()) json.fail("an object is wanted");
  return 0;
}

RecordFingerprints read_fingerprints(const JsonValue& json) {
  const JsonObject written(json, record_keys::kFingerprints);
  const auto plan = written.find("plan");
  return {written.need("graph").text(), written.need("machine").text(), written.need("profile").text(),
          plan ? plan->text() : ""};
}

Record read(const Parts& parts) {
  parts.check_keys();
  Record record;
  record.model = parts.value("model", text);
  if (parts.has("batch")) record.batch = parts.value("batch", count);
  record.budget = parts.value("budget", read_budget);
  record.peak.count = parts.value("peak", amount);
  record.split_kernels = parts.value("split_kernels", amount);
  record.graph = parts.part("graph", graph_from_json);
  record.machine = parts.part("machine", machine_from_json);
  record.profile = parts.part("profile", profile_from_json);
  if (parts.has("plan")) record.plan = parts.part("plan", plan_from_json);
  if (parts.has("result")) {
    parts.value("result", require_object);
    record.result = parts.need("result");
  }
  refuse_unless(check_record(record, parts.value("fingerprints", read_fingerprints)));
  return record;
}

}  // namespace

Result<Record> record_from_json(std::string_view text) {
  return read_json("record", [&] { return read(Parts(text)); });
}

Result<Record> read_record(const std::filesystem::path& path) { return parse_file(path, record_from_json); }

}  // namespace terrace
