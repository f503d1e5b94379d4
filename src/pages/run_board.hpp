// SPDX-License-Identifier: Apache-2.0
// The run board is the memory that `terrace run` shares with the processes it started: each of them keeps its
// figures there, and the command reads them for its progress line and its summary.
//
// It is plain data in a mapping that all of them share. A process writes its own row only.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "pages/wakeful.hpp"

namespace terrace::pages {

/// The environment variable that tells a started process what to do, as `key=value` pairs set off by
/// semicolons: fast, slow (a folder; the fastest first) and room (bytes of it) for each slower tier, policy,
/// packed (percent of `fast` for compressed pages), overhead (percent), interval (seconds), encrypt (1 or 0),
/// record (a file), board (a file that holds the RunBoard), group (the folder of a control group whose limit
/// is the run's).
inline constexpr char kRunVariable[] = "TERRACE_RUN";

struct RunRow {
  std::uint32_t process = 0;
  std::uint32_t managed = 0;                              ///< 0: it could not be managed, 1: it is
  std::uint32_t ended = 0;                                ///< it has, and its memory is the others'
  std::uint64_t resident = 0, unmanaged = 0, stored = 0;  ///< bytes now
  std::uint64_t peak_resident = 0, peak_managed = 0;      ///< managed: wherever its pages are
  std::uint64_t faults = 0, zeroed = 0, opened = 0, fetches = 0, rescues = 0;
  std::uint64_t unpacked_faults = 0, unpacked = 0, packed = 0,
                peak_packed_memory = 0;  ///< of compressed memory
  std::uint64_t read = 0, read_ahead = 0, written = 0, left_clean = 0, left_zero = 0;
  std::uint64_t waiting_ns = 0, longest_ns = 0, room_waits = 0;
  std::uint64_t promoted = 0, samples = 0, sampled_hot = 0, sampling_ns = 0, intervals = 0, stretches = 0;
  double largest_overhead = 0;
  std::uint64_t stuck = 0, kept = 0, lost = 0, overdue = 0, forks = 0;
};
static_assert(std::is_trivially_copyable_v<RunRow>);

struct RunBoard {
  static constexpr std::uint32_t kRows = 256;

  std::atomic<std::uint32_t> rows;  ///< how many were wanted: later processes have none
  Wakeful wakeful;                  ///< the command's thread, for all of them
  RunRow row[kRows];
};

}  // namespace terrace::pages
