// SPDX-License-Identifier: Apache-2.0
#include "base/json_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "terrace/bytes.hpp"

namespace terrace {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 32, kMaxQuoted = 40;
// The text is limited because parsed values take many times the bytes of their text.
constexpr Bytes kMaxText = Bytes{256U << 20U};

/// Refuses what the JSON library itself would accept: any depth, and duplicate keys, of which it keeps the
/// last.
class Watch {
 public:
  bool operator()(int /*depth*/, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (keys_.size() == kMaxDepth)
          throw JsonError(fmt::format("the text nests values more than {} deep", kMaxDepth));
        keys_.emplace_back();
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        keys_.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!keys_.back().insert(parsed.get_ref<const std::string&>()).second)
          throw JsonError(fmt::format("the key {} stands twice in one object",
                                      in_quotes(parsed.get_ref<const std::string&>())));
        break;
      default:
        break;
    }
    return true;
  }

 private:
  std::vector<std::unordered_set<std::string>> keys_;
};

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(text.size(), byte == 0 ? 0 : byte - 1));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

}  // namespace

Json parse_json(std::string_view text) {
  if (text.size() > kMaxText.count) {
    throw JsonError(fmt::format("the text has {}; at most {} are read", readable(Bytes{text.size()}),
                                to_string(kMaxText)));
  }
  Watch watch;
  try {
    return Json::parse(text.begin(), text.end(), std::ref(watch));
  } catch (const Json::parse_error& error) {
    throw JsonError(fmt::format("{}: the text is not JSON here", line_and_column(text, error.byte)));
  } catch (const Json::out_of_range&) {
    throw JsonError("the text holds a number too large for any type");
  }
}

std::string in_quotes(std::string_view text) {
  if (text.size() <= kMaxQuoted) return fmt::format("'{}'", text);
  // The cut must not split a UTF-8 character.
  std::size_t end = kMaxQuoted;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return fmt::format("'{}...'", text.substr(0, end));
}

void JsonValue::fail(const std::string& why) const {
  throw JsonError(place_.empty() ? why : fmt::format("{}: {}", place_, why));
}

const std::string& JsonValue::text() const {
  if (!json_->is_string()) fail(fmt::format("a string is wanted, not {}", json_->type_name()));
  return json_->get_ref<const std::string&>();
}

bool JsonValue::flag() const {
  if (!json_->is_boolean()) fail(fmt::format("true or false is wanted, not {}", json_->type_name()));
  return json_->get<bool>();
}

std::int64_t JsonValue::integer(std::int64_t least, std::int64_t most) const {
  const std::string wanted = fmt::format("a whole number from {} to {} is wanted", least, most);
  if (!json_->is_number()) fail(fmt::format("{}, not {}", wanted, json_->type_name()));
  const bool fits = json_->is_number_unsigned() &&
                    json_->get<std::uint64_t>() >= static_cast<std::uint64_t>(least) &&
                    json_->get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  if (!fits) fail(fmt::format("{}, not {}", wanted, json_->dump()));
  return json_->get<std::int64_t>();
}

double JsonValue::number() const {
  if (!json_->is_number()) fail(fmt::format("a number is wanted, not {}", json_->type_name()));
  return json_->get<double>();
}

float JsonValue::single() const {
  const double value = number();
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()))
    fail(fmt::format("{} is too large for a float", json_->dump()));
  return static_cast<float>(value);
}

std::size_t JsonValue::size() const {
  if (!json_->is_array()) fail(fmt::format("an array is wanted, not {}", json_->type_name()));
  return json_->size();
}

JsonValue JsonValue::operator[](std::size_t index) const {
  return {(*json_)[index], fmt::format("{}[{}]", place_, index)};
}

JsonObject::JsonObject(JsonValue value, const std::vector<std::string_view>& known)
    : value_(std::move(value)) {
  const Json& json = value_.json();
  if (!json.is_object()) value_.fail(fmt::format("an object is wanted, not {}", json.type_name()));
  for (auto entry = json.begin(); entry != json.end(); ++entry) {
    if (std::find(known.begin(), known.end(), entry.key()) != known.end()) continue;
    value_.fail(known.empty() ? fmt::format("unknown key {}; there are none here", in_quotes(entry.key()))
                              : fmt::format("unknown key {}; there are {}", in_quotes(entry.key()),
                                            fmt::join(known, ", ")));
  }
}

std::optional<JsonValue> JsonObject::find(std::string_view key) const {
  const auto entry = value_.json().find(key);
  if (entry == value_.json().end()) return std::nullopt;
  return JsonValue(*entry, place_of(key));
}

JsonValue JsonObject::need(std::string_view key) const {
  if (auto found = find(key)) return *std::move(found);
  fail(fmt::format("the key '{}' is missing", key));
}

std::string JsonObject::place_of(std::string_view key) const {
  return value_.place().empty() ? std::string(key) : fmt::format("{}.{}", value_.place(), key);
}

JsonObject open_format(const JsonValue& json, const JsonFormat& format,
                       const std::vector<std::string_view>& known) {
  if (json.json().is_object()) {
    const auto name = json.json().find("format"), version = json.json().find("version");
    if (name == json.json().end() || *name != format.name)
      json.fail(fmt::format("this is no {}: the key 'format' must be '{}'", format.what, format.name));
    if (version == json.json().end() || *version != format.version)
      json.fail(fmt::format("the key 'version' must be {}, the one this build reads", format.version));
  }
  return {json, known};
}

}  // namespace terrace
