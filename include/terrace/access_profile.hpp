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
// Every counted page costs a fault and a change of protection, some microseconds (docs/results/access.md):
// this is for one step of many. Results do not change. What the program must not do while it is profiled:
// - give pages of an area to the system (read, write, io_uring): such a call fails with EFAULT;
// - touch an area in a thread that blocks SIGSEGV, or in a child process made by fork;
// - install a handler of SIGSEGV that does not call the one it replaces. One that was there before is called
//   for every fault that is not ours, and is back afterwards.
// One profile at a time in a process; its functions may be called by any thread.
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
  Bytes window{};                   ///< zero: the size of the processor's last cache
  std::size_t pages_per_fault = 1;  ///< that many are opened and counted together: coarser, and cheaper
};

/// Pages, each as often as it was counted.
struct PageCount {
  std::uint64_t reads = 0, writes = 0;
  bool operator==(const PageCount&) const = default;
};

struct AreaProfile {
  std::string name;
  Bytes bytes;
  std::uint64_t pages = 0;
  std::uint32_t first_layer = 0, last_layer = 0;  ///< in which it was an area
  std::vector<PageCount> layers;                  ///< one for each layer of the profile
  bool complete = true;  ///< false: the system refused to protect some pages, and there were more accesses

  PageCount total() const;
};

struct AccessProfile {
  std::vector<std::string> layers;
  std::vector<AreaProfile> areas;  ///< in the order in which they were added
};

/// In scope means counted. Ends before its memory does, and may outlive the profile.
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

/// In scope means profiling; letting go of it without end_profile drops what was counted.
class AccessProfiler {
 public:
  AccessProfiler(AccessProfiler&& other) noexcept;
  AccessProfiler& operator=(AccessProfiler&& other) noexcept;
  /// pre: no other thread uses an area meanwhile
  ~AccessProfiler();

  /// pre: `pages` begins at a page, is not empty, and all its pages, the last one as a whole, are readable,
  /// writable, and part of no other area
  ProfiledArea add_area(std::string name, std::span<std::byte> pages);
  /// Another layer begins. What comes before the first one is counted in a layer named `start`.
  void add_layer(std::string name);
  /// Counts every page again that is touched from here on, as if nothing were in a cache.
  void forget_cache();
  /// What was counted. pre: not ended before; no other thread uses an area meanwhile
  AccessProfile end_profile();

 private:
  friend Result<AccessProfiler> start_profile(const AccessOptions& options);
  friend struct ProfiledArea::State;
  struct State;
  explicit AccessProfiler(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Fails where accesses are being counted already, and on processors other than x86-64.
Result<AccessProfiler> start_profile(const AccessOptions& options = {});

}  // namespace terrace
