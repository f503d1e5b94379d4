// SPDX-License-Identifier: Apache-2.0
// What the library that `terrace run` loads knows about itself, and what it does from time to time while the
// program runs (preload.cpp starts it and stands in for the C library's functions).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pages/group_room.hpp"
#include "pages/preload/growth.hpp"
#include "pages/preload/layout.hpp"
#include "pages/run_board.hpp"
#include "pages/service.hpp"

namespace terrace::pages {

struct SlowSetting {
  std::string folder;
  std::size_t room = 0;
};

struct Settings {
  std::size_t fast = 0;
  std::vector<SlowSetting> slow;
  std::string policy = "keeper", board, record, group;
  double overhead = 5, interval = 1;
  double packed = 0;  ///< the share of the memory in which pages may be kept compressed, in percent
  bool encrypt = false;
};

/// Everything there is, in memory of the library's own. Never destroyed: a program may use its memory to its
/// last instruction.
struct Library {
  Settings settings;
  std::unique_ptr<Service> service;
  std::optional<Layout> layout;
  std::optional<GroupRoom> group;
  Growth growth;
  bool reads_headers = false;  ///< blocks of malloc have the headers that `growth` reads
  RunBoard* board = nullptr;
  RunRow* row = nullptr;
  static constexpr std::size_t kMostChildren = 256;
  int children[kMostChildren]{};  ///< pipes whose other ends live in forked children
  std::size_t child_count = 0;
  int next_child[2] = {-1, -1};
  std::uint64_t next_window_ns = 0;
  unsigned ticks_without_room = 0, ticks = 0;
  std::uint64_t allowance = 0;
  bool let_go_late = false;  ///< more children than pipes: slots are held for good
};

/// Prints one line to the program's standard error.
void say(std::string_view text);

/// Reads `key=value;key=value..`, as the command line writes it.
Settings read_settings(std::string_view text);

/// Opens the board that all processes of a run share; take_row() takes this process's row of it.
void open_board(Library& me);
void take_row(Library& me);
/// Writes the row, where there is one.
void report(Library& me, const ServiceStatistics& now, std::uint64_t unmanaged);

/// Looks at the program's layout, its children and what it may use; called every few milliseconds.
bool tick(Library& me);
/// Adds a window to the trace: how often each part was wanted.
void record_window(Library& me);

}  // namespace terrace::pages
