// SPDX-License-Identifier: Apache-2.0
// What fuzzers of text formats demand: a text is refused with a sentence, or what it says, written again,
// means the same.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

namespace terrace::testing {

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Returns what `read` makes of the bytes; nothing where it refuses them.
template <class Read, class Write>
auto round_trip(const std::uint8_t* data, std::size_t size, Read read, Write write) {
  auto value = read(std::string_view(reinterpret_cast<const char*>(data), size));
  std::optional<std::decay_t<decltype(*value)>> made;
  if (!value) {
    require(!value.error().message.empty());
    return made;
  }
  // Fingerprints are made from texts, so a value that is equal has to have the same text: zero has no sign.
  const auto text = write(*value);
  const auto again = read(text);
  require(again.ok() && *again == *value && write(*again) == text);
  made = *std::move(value);
  return made;
}

}  // namespace terrace::testing
