// SPDX-License-Identifier: Apache-2.0
// Reads untrusted JSON: every mistake in it becomes one sentence that names its place, such as
// `kernels[3].inputs[0].tensor: ...`.
//
// The reading functions throw JsonError, which read_json() turns into a Result; nothing of this header is
// visible outside the library.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "terrace/result.hpp"

namespace terrace {

class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Parses text. It refuses what is not JSON, is nested too deeply, has a duplicate key in an object, or is
/// too large.
nlohmann::json parse_json(std::string_view text);

/// Quotes and shortens untrusted text for a message.
std::string in_quotes(std::string_view text);

/// A JsonValue is one value and its path in the document. It borrows the value.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& json, std::string place) : json_(&json), place_(std::move(place)) {}

  const nlohmann::json& json() const { return *json_; }
  const std::string& place() const { return place_; }
  [[noreturn]] void fail(const std::string& why) const;

  const std::string& text() const;
  bool flag() const;
  /// Reads a whole number within least..most. pre: least >= 0
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  double number() const;
  float single() const;
  /// The number of elements of an array, and access to one of them.
  std::size_t size() const;
  JsonValue operator[](std::size_t index) const;

 private:
  const nlohmann::json* json_;
  std::string place_;
};

/// A JsonObject is an object whose keys must all be known.
class JsonObject {
 public:
  JsonObject(JsonValue value, const std::vector<std::string_view>& known);

  std::optional<JsonValue> find(std::string_view key) const;
  JsonValue need(std::string_view key) const;
  [[noreturn]] void fail(const std::string& why) const { value_.fail(why); }

 private:
  std::string place_of(std::string_view key) const;
  JsonValue value_;
};

/// How a text names its own format, and which version of it is read.
struct JsonFormat {
  std::string_view what;  ///< the noun of a message, such as `plan`
  std::string_view name;
  int version;
};

/// Opens the outermost object of a text. Another format or version may have other keys, so `format` and
/// `version` are checked before the keys.
JsonObject open_format(const JsonValue& json, const JsonFormat& format,
                       const std::vector<std::string_view>& known);

/// Reads every element of an array.
template <class Read>
auto read_list(const JsonValue& json, Read read) {
  std::vector<decltype(read(json))> elements;
  const std::size_t size = json.size();
  elements.reserve(size);
  for (std::size_t i = 0; i < size; ++i) elements.push_back(read(json[i]));
  return elements;
}

/// Returns what `read` makes; a JsonError that it throws becomes the sentence `cannot read the WHAT: ..`.
template <class Read>
Result<std::invoke_result_t<Read>> read_json(std::string_view what, Read read) {
  try {
    return read();
  } catch (const JsonError& error) {
    return Error{ErrorCode::invalid_argument, "cannot read the " + std::string(what) + ": " + error.what()};
  }
}

/// The same for a text that is parsed first: `read` takes its outermost value.
template <class Read>
Result<std::invoke_result_t<Read, JsonValue>> read_json(std::string_view text, std::string_view what,
                                                        Read read) {
  return read_json(what, [&] {
    const nlohmann::json json = parse_json(text);
    return read(JsonValue(json, ""));
  });
}

/// Throws the sentence of a failed check as a JsonError.
inline void refuse_unless(const Result<void>& valid) {
  if (!valid) throw JsonError(valid.error().message);
}

}  // namespace terrace
