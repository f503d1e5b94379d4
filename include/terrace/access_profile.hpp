// Counts how often a program's own data is read and written, layer by layer, during one step of its work (000
// section 3.1). For programs that do not use our engine; a trainer has counted_step (trainer.hpp).
//
//   area    whole pages that belong to one tensor (page_memory.hpp makes such memory)
//   layer   a part of the step, from one add_layer to the next
//   count   a page is counted when it is touched for the first time in a layer, and again when a window's
//           worth of other pages was touched since: as a cache of that size would miss it. Reads and writes
//           are counted apart; reading what was just written is not seen, and an instruction that reads and
//           writes at once is a write
//
// Every counted page costs a page fault and a change of protection, some microseconds
// (docs/results/access.md), so profile one step of many. Profiling does not change results. What the program
// must not do while it is profiled:
// - give pages of an area to the system (read, write, io_uring): such a call fails with EFAULT;
// - touch an area in a thread that blocks SIGSEGV, or in a child process made by fork;
// - install a handler of SIGSEGV that does not call the one it replaces. One that was there before is called
//   for every fault that is not ours, and is back afterwards.
// A process has one profile at a time; any thread may call its functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

struct AccessOptions {
  Bytes window{};  ///< zero means the size of the processor's last-level cache
  std::size_t pages_per_fault =
      1;  ///< this many are unprotected and counted together, which is coarser and cheaper
};

/// Counts of page accesses; a page is included as often as it was counted.
struct PageCount {
  std::uint64_t reads = 0, writes = 0;
  bool operator==(const PageCount&) const = default;
};

struct AreaProfile {
  std::string name;
  Bytes bytes;
  std::uint64_t pages = 0;
  std::uint32_t first_layer = 0, last_layer = 0;  ///< the layers between which it was an area
  std::vector<PageCount> layers;                  ///< one count for each layer of the profile
  bool complete =
      true;  ///< false where the system refused to protect some pages, so that accesses were missed

  PageCount total() const;
};

struct AccessProfile {
  std::vector<std::string> layers;
  std::vector<AreaProfile> areas;  ///< in the order in which they were added
};

/// An area is counted while this is in scope. It must end before its memory does, and may outlive the
/// profile.
class ProfiledArea {
 public:
  ProfiledArea(ProfiledArea&& other) noexcept;
  ProfiledArea& operator=(ProfiledArea&& other) noexcept;
  /// pre: no other thread uses the area meanwhile
  ~ProfiledArea();

 private:
  friend class AccessProfiler;
  struct State;
  explicit ProfiledArea(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Accesses are profiled while this is in scope; destroying it without end_profile discards the counts.
class AccessProfiler {
 public:
  AccessProfiler(AccessProfiler&& other) noexcept;
  AccessProfiler& operator=(AccessProfiler&& other) noexcept;
  /// pre: no other thread uses an area meanwhile
  ~AccessProfiler();

  /// pre: `pages` begins at a page, is not empty, and all its pages, the last one as a whole, are readable,
  /// writable, and part of no other area
  ProfiledArea add_area(std::string name, std::span<std::byte> pages);
  /// Begins another layer. Accesses before the first one are counted in a layer named `start`.
  void add_layer(std::string name);
  /// Empties the modelled cache, so that every page is counted again when it is next touched.
  void forget_cache();
  /// Ends the profile and returns the counts. pre: not ended before; no other thread uses an area meanwhile
  AccessProfile end_profile();

 private:
  friend Result<AccessProfiler> start_profile(const AccessOptions& options);
  friend struct ProfiledArea::State;
  struct State;
  explicit AccessProfiler(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Starts a profile. It fails where one is running already, and on processors other than x86-64.
Result<AccessProfiler> start_profile(const AccessOptions& options = {});

}  // namespace terrace
