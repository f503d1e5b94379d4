// SPDX-License-Identifier: Apache-2.0
// GroupRoom tells what the control group of a run has left, at any moment: page tables, the command, programs
// beside it and files that are read take from the same limit, and nobody can say beforehand how much.
//
// It reads the files of one group, of version 1 or 2, which stay open; it allocates nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace terrace::pages {

class GroupRoom {
 public:
  /// `folder` is the group's; empty: there is none.
  explicit GroupRoom(const std::string& folder);
  GroupRoom(const GroupRoom&) = delete;

  bool is_known() const { return usage_ >= 0; }
  /// Returns the bytes that may still be used before the group is as full as it should be, negative where it
  /// is fuller. Files that nobody has read twice count as free, for the kernel drops them on demand; where
  /// files that were dropped are read again, some room is left to them, more each time this is called.
  std::optional<std::int64_t> left();
  template <class Visit>
  void each_descriptor(Visit visit) const {
    for (const int file : {limit_, usage_, statistics_}) visit(file);
  }

 private:
  void leave_room_for_files(std::int64_t pages_read_again, std::int64_t limit);

  int limit_ = -1, usage_ = -1, statistics_ = -1;
  std::int64_t read_again_ = 0;  // pages of files, since the group exists
  std::int64_t for_files_ = 0;   // bytes
};

}  // namespace terrace::pages
