// SPDX-License-Identifier: Apache-2.0
// Takes a JSON object apart without parsing its values: a record holds texts of other formats, each of which
// its own reader parses, once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

/// One entry of an object. Borrows the text.
struct JsonPart {
  std::string_view key;    ///< as it stands in the text, without its quotes
  std::string_view value;  ///< without space around it
};

/// None where the text is no object or its brackets and strings do not close. Whether the values are JSON is
/// for their readers to say.
std::optional<std::vector<JsonPart>> json_parts(std::string_view text);

}  // namespace terrace
