// SPDX-License-Identifier: Apache-2.0
// The layout finds the memory of a program that can be managed: its heap and its anonymous private mappings,
// as /proc/self/maps shows them. glibc's malloc maps and extends memory without asking anybody, so the layout
// is looked at again and again; removals are told by the kernel.
//
// Left alone: stacks, the thread-local memory of the first thread, small mappings, everything that is shared,
// read-only or of a file, and the library's own memory. It allocates nothing, and keeps the files it reads
// open under high numbers: a program expects the low ones for itself.
#pragma once

#include "pages/reserved.hpp"
#include "pages/service.hpp"

namespace terrace::pages {

class Layout {
 public:
  Layout();

  /// Has new memory managed. Cheap where the program's size has not changed since and nothing went away.
  /// Returns whether it has grown.
  bool look(Service& service);
  /// Has all memory managed by a service that knows its parts already, in a forked child.
  void register_all(Service& service);
  /// Returns how much memory the process used when its layout was looked at last. Pages of files are not
  /// among it: the kernel has them once for all processes and takes them back when it needs the room.
  std::uint64_t in_use() const { return in_use_; }
  /// Calls `visit(descriptor)` for every file that is kept open.
  template <class Visit>
  void each_descriptor(Visit visit) const {
    for (const int file : {maps_, status_, pagemap_}) visit(file);
  }
  /// Makes the first page of every arena of malloc writable, because a fork locks them all.
  void touch_arenas();

 private:
  void open_files();
  bool read_maps();
  void read_sizes();
  bool forget_gone(Service& service);
  template <class Visit>
  void each_candidate(Visit visit);
  bool known(const Range& range) const;
  void find_present(Service& service, const Range& range, Service::Finder finder) const;

  int maps_ = -1, status_ = -1, pagemap_ = -1;
  Reserved<char> text_;
  std::size_t text_bytes_ = 0;
  Reserved<Range> ranges_, next_ranges_;
  std::size_t count_ = 0;
  std::uint64_t size_ = 0, size_seen_ = 0, in_use_ = 0;
  Address first_thread_;
};

}  // namespace terrace::pages
