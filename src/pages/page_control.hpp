// SPDX-License-Identifier: Apache-2.0
// PageControl is what the pager asks of the kernel: fill missing pages, take pages away, allow writing, and
// tell which faults happened. Userfault (userfault.hpp) does it with userfaultfd; tests have one that is
// nothing but a table.
//
// All functions are called with the pager's lock held. Where a part of the program's layout has changed and
// the event that tells so was not read yet, they do nothing and say `again`: the caller lets go of the lock,
// so that the event can be read, and asks anew.
#pragma once

#include "pages/geometry.hpp"

namespace terrace::pages {

/// Which of the pages asked for were dealt with.
struct PagesDone {
  PageMask pages = 0;
  bool again = false;
  bool no_memory = false;  ///< fill: the system has no memory left for this process
  PageMask existed = 0;    ///< fill: pages of them that were there already
  PageMask absent = 0;     ///< take: pages that are not there, given up by the program after it was told
};

/// One message of the kernel.
struct Event {
  enum class Kind {
    none,
    missing,   ///< a thread waits for the page at `address`
    write,     ///< a thread waits to write the protected page at `address`
    removed,   ///< [address, address + bytes) reads as zeros from now on
    unmapped,  ///< [address, address + bytes) is no longer the program's
    remapped,  ///< [address, address + bytes) is now at `to`
  };
  Kind kind = Kind::none;
  Address address = 0;
  Address to = 0;
  std::size_t bytes = 0;
  bool by_write = false;  ///< missing: the thread waits to write
};

enum class Protection { writable, read_only };

class PageControl {
 public:
  virtual ~PageControl() = default;

  /// Fills the missing ones of these pages of a part from `data`, which holds the whole part. A page that is
  /// present already counts as done and keeps its contents. Wakes nobody.
  virtual PagesDone fill(Address part, PageMask pages, const std::byte* data, Protection protection) = 0;
  /// Moves present pages of a part into the same places of a frame: they are missing afterwards.
  virtual PagesDone take(Address part, PageMask pages, std::byte* frame) = 0;
  /// Moves pages of a frame back to the same places of a part, where they can be written. A page that is
  /// present already counts as done and keeps its contents. Pages that the kernel does not move are left.
  /// Wakes nobody.
  virtual PagesDone put_back(Address part, PageMask pages, std::byte* frame) = 0;
  /// Lets these pages of a part be written and wakes whoever waits for them. Returns false for "again".
  virtual bool unprotect(Address part, PageMask pages) = 0;
  /// Lets every thread that waits for this part try again.
  virtual void wake(Address part) = 0;
  /// Whoever touches these pages is ended by a signal: their contents are lost.
  virtual void poison(Address part, PageMask pages) = 0;
};

}  // namespace terrace::pages
