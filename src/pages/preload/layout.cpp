// SPDX-License-Identifier: Apache-2.0
#include "pages/preload/layout.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "pages/out_of_the_way.hpp"
#include "pages/preload/own_memory.hpp"

namespace terrace::pages {
namespace {

constexpr std::size_t kLeastMapping = 256 << 10;
constexpr std::size_t kArena = std::size_t{64} << 20;  // the alignment of glibc's arenas
constexpr std::size_t kThreadLocal = 256 << 10;        // around the first thread's control block

// Linux 6.7; Debian 12's headers are older.
struct PageRegion {
  std::uint64_t start, end, categories;
};
struct ScanRequest {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted, category_mask,
      category_anyof_mask, return_mask;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanRequest);
constexpr std::uint64_t kPresent = 1 << 3, kSwapped = 1 << 4;

/// Reads a file of /proc from its start, as it is now. Returns the bytes read.
std::size_t read_again(int file, char* to, std::size_t most) {
  std::size_t bytes = 0;
  for (ssize_t got = 1; got > 0 && bytes < most; bytes += static_cast<std::size_t>(std::max<ssize_t>(got, 0)))
    got = pread(file, to + bytes, most - bytes, static_cast<off_t>(bytes));
  return bytes;
}

/// Returns the amount behind a name in /proc/self/status, `Name:  12 kB`.
std::uint64_t amount_of(std::string_view status, std::string_view name) {
  std::size_t at = status.find(name);
  if (at == status.npos) return 0;
  at = status.find_first_not_of(" \t", at + name.size());
  std::uint64_t kibibytes = 0;
  if (at != status.npos) std::from_chars(status.data() + at, status.data() + status.size(), kibibytes);
  return kibibytes * 1024;
}

struct Line {
  Address start = 0, end = 0;
  std::string_view rights, name;
  bool anonymous = false;
};

/// `start-end rights offset device inode   name`
Line parse(std::string_view text) {
  Line line;
  const char* at = text.data();
  const char* const end = at + text.size();
  at = std::from_chars(at, end, line.start, 16).ptr + 1;
  at = std::from_chars(at, end, line.end, 16).ptr + 1;
  std::string_view rest(at, static_cast<std::size_t>(end - at));
  const auto word = [&] {
    const std::size_t space = std::min(rest.find(' '), rest.size());
    const std::string_view found = rest.substr(0, space);
    rest.remove_prefix(std::min(space + 1, rest.size()));
    return found;
  };
  line.rights = word();
  word();
  const std::string_view device = word();
  line.anonymous = word() == "0" && device == "00:00";
  const std::size_t name = rest.find_first_not_of(' ');
  line.name = name == rest.npos ? "" : rest.substr(name);
  return line;
}

bool is_manageable(const Line& line) {
  if (line.rights != "rw-p" || !line.anonymous) return false;
  if (line.name == "[heap]") return true;
  return (line.name.empty() || line.name.starts_with("[anon")) && line.end - line.start >= kLeastMapping;
}

/// A stack of a thread lies right above its guard; malloc's arenas end in unused space, too, but at a
/// multiple of their size.
bool is_stack(const Line& line, const Line& below) {
  return below.end == line.start && below.rights == "---p" && below.anonymous && line.start % kArena != 0;
}

}  // namespace

Layout::Layout()
    : text_(std::size_t{16} << 20, "the program's mappings"),
      ranges_(65536, "the program's mappings"),
      next_ranges_(65536, "the program's mappings"),
      first_thread_(static_cast<Address>(pthread_self())) {
  open_files();
}

/// These files tell of the process that opened them.
void Layout::open_files() {
  const auto reopen = [](int& file, const char* path) {
    if (file >= 0) syscall(SYS_close, file);
    file = out_of_the_way(open(path, O_RDONLY | O_CLOEXEC));
  };
  reopen(maps_, "/proc/self/maps");
  reopen(status_, "/proc/self/status");
  reopen(pagemap_, "/proc/self/pagemap");
}

void Layout::read_sizes() {
  char text[4096];
  const std::string_view status(text, read_again(status_, text, sizeof text));
  size_ = amount_of(status, "\nVmSize:");
  in_use_ = amount_of(status, "\nRssAnon:") + amount_of(status, "\nRssShmem:");
}

bool Layout::read_maps() {
  text_bytes_ = read_again(maps_, text_.data(), text_.size());
  return text_bytes_ > 0;
}

template <class Visit>
void Layout::each_candidate(Visit visit) {
  // What must not be managed is cut out of a mapping: neighbours with the same rights are one mapping.
  const Range holes[] = {{own_start(), own_end()},
                         {first_thread_ - kThreadLocal, first_thread_ + kThreadLocal / 4}};
  const auto cut = [&](auto&& self, Range range, std::size_t hole) -> void {
    if (range.start >= range.end) return;
    if (hole == std::size(holes)) return visit(range);
    const Range& out = holes[hole];
    if (range.end <= out.start || range.start >= out.end) return self(self, range, hole + 1);
    self(self, {range.start, std::max(range.start, part_start(out.start))}, hole + 1);
    self(self, {std::min(range.end, part_start(out.end + kPart - 1)), range.end}, hole + 1);
  };
  Line below;
  const std::string_view all(text_.data(), text_bytes_);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    const Line line = parse(all.substr(at, end - at));
    at = end + 1;
    if (is_manageable(line) && !is_stack(line, below)) cut(cut, {line.start, line.end}, 0);
    below = line;
  }
}

bool Layout::known(const Range& range) const {
  const Range* const end = &ranges_[0] + count_;
  const Range* const found = std::lower_bound(
      &ranges_[0], end, range, [](const Range& a, const Range& b) { return a.start < b.start; });
  return found != end && *found == range;
}

/// What lies at a place that was unmapped is not known, whatever it looks like. Returns whether there is any.
bool Layout::forget_gone(Service& service) {
  Service::GoneRanges gone;
  const std::size_t gone_count = service.take_gone(gone);
  const auto stays = [&](const Range& range) {
    return std::none_of(gone.begin(), gone.begin() + gone_count,
                        [&](const Range& other) { return other.touches(range); });
  };
  if (gone_count > 0)
    count_ = static_cast<std::size_t>(std::stable_partition(&ranges_[0], &ranges_[0] + count_, stays) -
                                      &ranges_[0]);
  return gone_count > 0;
}

bool Layout::look(Service& service) {
  const bool gone = forget_gone(service);
  read_sizes();
  if ((size_ == size_seen_ && !gone) || !read_maps()) return false;
  const bool grows = size_ > size_seen_;
  size_seen_ = size_;
  std::size_t count = 0;
  each_candidate([&](const Range& range) {
    if (count == next_ranges_.size()) return;
    if (!known(range)) {
      if (service.manage(range.start, range.end - range.start) != 0) return;
      find_present(service, range, Service::Finder::layout);
    }
    next_ranges_[count++] = range;
  });
  std::memcpy(&ranges_[0], &next_ranges_[0], count * sizeof(Range));
  count_ = count;
  return grows;
}

void Layout::register_all(Service& service) {
  open_files();
  if (!read_maps()) return;
  each_candidate([&](const Range& range) {
    if (service.manage(range.start, range.end - range.start) == 0)
      find_present(service, range, Service::Finder::child);
  });
}

void Layout::touch_arenas() {
  if (!read_maps()) return;
  each_candidate([](const Range& range) {
    // The kernel writes to them in our place: another thread may have unmapped one since the maps were read.
    for (Address at = (range.start + kArena - 1) / kArena * kArena; at < range.end; at += kArena)
      madvise(reinterpret_cast<void*>(at), kPage, MADV_POPULATE_WRITE);
  });
}

/// Registered memory gets no page without us, so what the kernel shows now is all there is.
void Layout::find_present(Service& service, const Range& range, Service::Finder finder) const {
  PageRegion found[64];
  for (Address at = range.start; at < range.end;) {
    ScanRequest request{};
    request.size = sizeof request;
    request.start = at;
    request.end = range.end;
    request.vec = reinterpret_cast<std::uint64_t>(found);
    request.vec_len = std::size(found);
    request.category_anyof_mask = request.return_mask = kPresent | kSwapped;
    const int count = ioctl(pagemap_, kPagemapScan, &request);
    if (count < 0) break;
    for (int i = 0; i < count; ++i) {
      for (Address part = part_start(found[i].start); part < found[i].end; part += kPart)
        service.found_present(part, pages_within(part, found[i].start, found[i].end), finder);
    }
    if (request.walk_end <= at) break;
    at = request.walk_end;
  }
}

}  // namespace terrace::pages
