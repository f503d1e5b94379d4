// SPDX-License-Identifier: Apache-2.0
#include "pages/preload/library.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include "pages/clock.hpp"
#include "pages/preload/descriptors.hpp"

namespace terrace::pages {
namespace {

constexpr unsigned kTicksBeforeAWord = 40;
constexpr unsigned kTicksBetweenShares = 2;

}  // namespace

void say(std::string_view text) {
  std::string line = "terrace: " + std::string(text) + "\n";
  [[maybe_unused]] const auto ignored = write(STDERR_FILENO, line.data(), line.size());
}

Settings read_settings(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const std::size_t equals = pair.find('=');
    if (equals == pair.npos) continue;
    const std::string_view key = pair.substr(0, equals), value = pair.substr(equals + 1);
    const auto number = [&](auto& to) { std::from_chars(value.data(), value.data() + value.size(), to); };
    if (key == "fast") number(settings.fast);
    if (key == "slow") settings.slow.push_back({std::string(value), 0});
    if (key == "room" && !settings.slow.empty()) number(settings.slow.back().room);
    if (key == "policy") settings.policy = value;
    if (key == "overhead") number(settings.overhead);
    if (key == "interval") number(settings.interval);
    if (key == "packed") number(settings.packed);
    if (key == "encrypt") settings.encrypt = value == "1";
    if (key == "record") settings.record = value;
    if (key == "board") settings.board = value;
    if (key == "group") settings.group = value;
  }
  return settings;
}

void open_board(Library& me) {
  const int file = open(me.settings.board.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  const long start =
      syscall(SYS_mmap, nullptr, sizeof(RunBoard), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (start != -1) me.board = reinterpret_cast<RunBoard*>(start);
}

void take_row(Library& me) {
  me.row = nullptr;
  if (me.board == nullptr) return;
  const std::uint32_t number = me.board->rows.fetch_add(1);
  if (number < RunBoard::kRows) me.row = &me.board->row[number];
  if (me.row != nullptr) me.row->process = static_cast<std::uint32_t>(getpid());
}

void report(Library& me, const ServiceStatistics& now, std::uint64_t unmanaged) {
  if (me.row == nullptr) return;
  RunRow& row = *me.row;
  const PagerCounts& counts = now.counts;
  row.managed = 1;
  row.resident = now.resident_pages * kPage;
  row.unmanaged = unmanaged;
  row.stored = now.used_slots * kPart;
  row.peak_resident = std::max(row.peak_resident, row.resident + unmanaged);
  row.peak_managed = std::max(row.peak_managed, row.resident + row.stored);
  row.faults = counts.faults;
  row.zeroed = counts.zero_faults;
  row.opened = counts.write_faults;
  row.fetches = counts.fetch_faults;
  row.rescues = counts.rescues;
  row.unpacked_faults = now.unpacked_faults;
  row.unpacked = now.unpacked_bytes;
  row.packed = now.packed_bytes;
  row.peak_packed_memory = std::max(row.peak_packed_memory, now.packed_memory);
  row.read = now.read_bytes;
  row.read_ahead = counts.read_ahead * kPage;
  row.written = now.written_bytes;
  row.left_clean = counts.evicted_clean * kPage;
  row.left_zero = counts.evicted_zero * kPage;
  row.waiting_ns = now.waiting_ns;
  row.longest_ns = now.longest_ns;
  row.room_waits = now.room_waits;
  row.promoted = counts.promoted * kPage;
  row.samples = now.samples;
  row.sampled_hot = now.sampled_hot;
  row.sampling_ns = now.sampling_ns;
  row.intervals = now.intervals;
  row.stretches = now.stretches;
  row.largest_overhead = now.largest_overhead;
  row.stuck = counts.stuck;
  row.kept = counts.kept_for_space;
  row.lost = counts.lost;
  row.overdue = now.overdue_address;
}

// One write, so that the windows of several processes do not mix; parts of different processes get different
// numbers.
void record_window(Library& me) {
  const std::span<Address> faults = me.service->take_faults();
  std::sort(faults.begin(), faults.end());
  std::string text = "window\n";
  for (std::size_t i = 0; i < faults.size();) {
    const Address part = part_start(faults[i]);
    unsigned reads = 0, writes = 0;
    for (; i < faults.size() && part_start(faults[i]) == part; ++i) ++(faults[i] & 1 ? writes : reads);
    char line[64];
    text.append(line, static_cast<std::size_t>(std::snprintf(
                          line, sizeof line, "%llx %u %u\n",
                          static_cast<unsigned long long>((part | std::uint64_t(getpid()) << 47) / kPart),
                          reads, writes)));
  }
  const int file = open(me.settings.record.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const auto ignored = write(file, text.data(), text.size());
  plain_close(file);
}

namespace {

/// Children that were forked keep the other end of a pipe open until they end or become another program.
void look_for_children(Library& me) {
  for (std::size_t i = 0; i < me.child_count;) {
    pollfd end{me.children[i], POLLIN, 0};
    if (poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0) {
      mark(me.children[i], false);
      plain_close(me.children[i]);
      me.children[i] = me.children[--me.child_count];
      if (me.child_count == 0 && !me.let_go_late) me.service->let_slots_go();
    } else {
      ++i;
    }
  }
}

/// All processes of a run share what it was given. Each may use what the others do not, and no less than an
/// equal share of it: so nobody starves, and together they use too much only while one makes room for
/// another.
///
/// A control group may have less left than that: what it has is shared, too.
std::uint64_t my_allowance(Library& me, std::uint64_t in_use) {
  if (me.board == nullptr || me.row == nullptr) return me.settings.fast;
  if (++me.ticks % kTicksBetweenShares != 1) return me.allowance;
  const auto mine = me.row->process;
  const std::uint32_t rows = std::min(me.board->rows.load(), RunBoard::kRows);
  std::uint64_t others = 0, processes = 1;
  for (std::uint32_t i = 0; i < rows; ++i) {
    const RunRow& row = me.board->row[i];
    if (&row == me.row || row.managed == 0 || row.ended != 0 || row.process == mine) continue;
    if (kill(static_cast<pid_t>(row.process), 0) != 0 && errno == ESRCH) continue;
    const std::uint64_t uses = row.resident + row.unmanaged;
    others += uses;
    processes += uses > 0;
  }
  const std::uint64_t fast = me.settings.fast;
  me.allowance = std::max(fast > others ? fast - others : 0, fast / processes);
  if (const auto left = me.group->left()) {
    const std::int64_t most =
        static_cast<std::int64_t>(in_use) + *left / static_cast<std::int64_t>(processes);
    me.allowance = std::min(me.allowance, static_cast<std::uint64_t>(std::max<std::int64_t>(most, 0)));
  }
  return me.allowance;
}

}  // namespace

// What the program uses beside managed memory comes out of the same allowance.
bool tick(Library& me) {
  // What malloc has just taken is the program's at once and managed only when it is found: a program that
  // grows is looked at more often, so that little is touched in between.
  const std::uint64_t managed_before = me.service->resident_bytes();
  const bool grows = me.layout->look(*me.service);
  look_for_children(me);
  if (!me.settings.record.empty() && now_ns() >= me.next_window_ns) {
    record_window(me);
    me.next_window_ns = now_ns() + static_cast<std::uint64_t>(me.settings.interval * 1e9);
  }
  const ServiceStatistics now = me.service->statistics();
  // What the process uses was read between the two: of memory that grows the smaller one errs on the safe
  // side.
  const std::uint64_t whole = me.layout->in_use();
  const std::uint64_t managed = std::min(managed_before, now.resident_pages * kPage);
  const std::uint64_t unmanaged = whole > managed ? whole - managed : 0;
  const std::uint64_t fast = my_allowance(me, whole);
  me.service->set_limit(fast > unmanaged ? fast - unmanaged : 0);
  me.service->set_room_of_memory_stores(
      static_cast<std::size_t>(static_cast<double>(fast) * me.settings.packed / 100));
  // Memory that malloc has just taken is not managed yet: only what lasts is worth a word.
  me.ticks_without_room = unmanaged >= fast + now.packed_memory ? me.ticks_without_room + 1 : 0;
  if (me.ticks_without_room == kTicksBeforeAWord)
    say(
        fmt::format("this program uses {} that cannot be managed (stacks, shared and locked memory): give it "
                    "more than --fast {}",
                    readable(Bytes{unmanaged}), readable(Bytes{fast})));
  if (now.overdue_address != 0 && (me.row == nullptr || me.row->overdue != now.overdue_address))
    say(fmt::format(
        "a thread has waited for the page at {:#x} for more than a second: the disk is slow, or nobody "
        "serves it",
        now.overdue_address));
  report(me, now, unmanaged);
  return grows;
}

}  // namespace terrace::pages
