// SPDX-License-Identifier: Apache-2.0
#include "pages/group_room.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

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

std::optional<std::int64_t> GroupRoom::left() {
  char text[4096];
  if (!is_known()) return std::nullopt;
  const auto limit = number(text_of(limit_, text, sizeof text));
  const auto usage = number(text_of(usage_, text, sizeof text));
  if (!limit || !usage) return std::nullopt;
  const std::string_view statistics = text_of(statistics_, text, sizeof text);
  const auto value = [&](std::string_view name, std::string_view of_all) {
    for (const std::string_view line : {of_all, name}) {
      const std::size_t at = statistics.find(line);
      if (at != statistics.npos) return number(statistics.substr(at + line.size())).value_or(0);
    }
    return std::int64_t{0};
  };
  const std::int64_t files = value("\ninactive_file ", "\ntotal_inactive_file ");
  const std::int64_t read_again = value("\nworkingset_refault_file ", "\ntotal_workingset_refault_file ");
  leave_room_for_files(read_again - std::exchange(read_again_, read_again), *limit);
  // What is charged between two looks, by everybody: page tables, buffers, a thread that somebody starts.
  const std::int64_t margin = (std::int64_t{1} << 20) + *limit / 64;
  return *limit - (*usage - files) - margin - for_files_;
}

/// A program that sorts in files, say, needs the kernel's copies of them as much as its own memory. Nobody
/// can say how many bytes: so they get more while they are read again, and slowly less when they are not.
void GroupRoom::leave_room_for_files(std::int64_t pages_read_again, std::int64_t limit) {
  constexpr std::int64_t kFew = 8;  // fewer since the last look are chance
  if (pages_read_again > kFew)
    for_files_ = std::min(for_files_ + limit / 256, limit / 8);
  else
    for_files_ -= for_files_ / 256;
}

}  // namespace terrace::pages
