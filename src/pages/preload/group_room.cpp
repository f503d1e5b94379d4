// SPDX-License-Identifier: Apache-2.0
#include "pages/preload/group_room.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

#include "pages/out_of_the_way.hpp"

namespace terrace::pages {
namespace {

int open_file(const std::string& path) { return out_of_the_way(open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

std::string_view text_of(int file, char* to, std::size_t most) {
  const ssize_t bytes = pread(file, to, most, 0);
  return {to, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

/// The number at the start of a text; nothing where there is none, as in "max".
std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

}  // namespace

GroupRoom::GroupRoom(const std::string& folder) {
  if (folder.empty()) return;
  const bool first = access((folder + "/memory.usage_in_bytes").c_str(), R_OK) == 0;  // of version 1
  limit_ = open_file(folder + (first ? "/memory.limit_in_bytes" : "/memory.max"));
  usage_ = open_file(folder + (first ? "/memory.usage_in_bytes" : "/memory.current"));
  statistics_ = open_file(folder + "/memory.stat");
}

std::optional<std::int64_t> GroupRoom::left() const {
  char text[4096];
  if (!is_known()) return std::nullopt;
  const auto limit = number(text_of(limit_, text, sizeof text));
  const auto usage = number(text_of(usage_, text, sizeof text));
  if (!limit || !usage) return std::nullopt;
  const std::string_view statistics = text_of(statistics_, text, sizeof text);
  std::int64_t files = 0;
  for (const std::string_view name : {"\ninactive_file ", "\ntotal_inactive_file "}) {
    if (const std::size_t at = statistics.find(name); at != statistics.npos)
      files = number(statistics.substr(at + name.size())).value_or(0);
  }
  // What is charged between two looks, by everybody: page tables, buffers, a thread that somebody starts.
  const std::int64_t margin = (std::int64_t{1} << 20) + *limit / 64;
  return *limit - (*usage - files) - margin;
}

}  // namespace terrace::pages
