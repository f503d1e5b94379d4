// SPDX-License-Identifier: Apache-2.0
// libterrace-run.so: what `terrace run` loads into a program by LD_PRELOAD, so that the program's memory is
// managed without its knowing.
//
// It stands in for a few functions of the C library. Mappings are managed as soon as they are made;
// what malloc maps and extends by itself is found by looking (layout.hpp); what goes away is told by the
// kernel. Every function here may be called before the library has started and in programs that it leaves
// alone, and then only passes on.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pages/clock.hpp"
#include "pages/file_store.hpp"
#include "pages/out_of_the_way.hpp"
#include "pages/preload/layout.hpp"
#include "pages/preload/own_memory.hpp"
#include "pages/run_board.hpp"
#include "pages/service.hpp"

namespace terrace::pages {
namespace {

constexpr std::size_t kMostManaged = std::size_t{1} << 40;
constexpr std::size_t kMostChildren = 256;
constexpr unsigned kTicksBeforeAWord = 20;
constexpr unsigned kTicksBetweenShares = 8;

struct SlowSetting {
  std::string folder;
  std::size_t room = 0;
};

struct Settings {
  std::size_t fast = 0;
  std::vector<SlowSetting> slow;
  std::string policy = "keeper", board, record;
  double overhead = 5, interval = 1;
  bool encrypt = false;
};

/// Everything there is, in memory of the library's own. Never destroyed: a program may use its memory to its
/// last instruction.
struct Library {
  Settings settings;
  std::unique_ptr<Service> service;
  std::optional<Layout> layout;
  RunBoard* board = nullptr;
  RunRow* row = nullptr;
  int children[kMostChildren]{};  ///< pipes whose other ends live in forked children
  std::size_t child_count = 0;
  int next_child[2] = {-1, -1};
  std::uint64_t next_window_ns = 0;
  unsigned ticks_without_room = 0, ticks = 0;
  std::uint64_t allowance = 0;
  bool let_go_late = false;  ///< more children than pipes: slots are held for good
};

std::atomic<Library*> library{nullptr};
std::atomic<bool> serves_own_memory{false};  // calloc() while a forked child starts its threads

// Descriptors of ours, which a program that closes everything must not close.
constexpr unsigned kMostDescriptors = 65536;
std::atomic<bool> ours[kMostDescriptors];

bool is_ours(unsigned descriptor) {
  return descriptor < kMostDescriptors && ours[descriptor].load(std::memory_order_relaxed);
}

void mark(int descriptor, bool mine) {
  if (descriptor >= 0 && descriptor < static_cast<int>(kMostDescriptors)) ours[descriptor] = mine;
}

void mark_all(const Library& me, bool mine) {
  me.service->each_descriptor([&](int descriptor) { mark(descriptor, mine); });
  me.layout->each_descriptor([&](int descriptor) { mark(descriptor, mine); });
}

int plain_close(int descriptor) { return static_cast<int>(syscall(SYS_close, descriptor)); }

/// dup3() that leaves our descriptors alone.
int copy_onto(int from, int to, int flags) {
  if (is_ours(static_cast<unsigned>(to))) return errno = EBUSY, -1;
  return static_cast<int>(syscall(SYS_dup3, from, to, flags));
}

int close_all(unsigned first, unsigned last, int flags) {
  if (first > last) return errno = EINVAL, -1;
  for (unsigned start = first; start <= last;) {
    unsigned end = start;
    while (end < kMostDescriptors && end < last && !is_ours(end)) ++end;
    // Beyond the table nothing is ours.
    const unsigned stop = end >= kMostDescriptors ? last : is_ours(end) ? end : end + 1;
    const bool any = end >= kMostDescriptors || stop > start;
    if (any && syscall(SYS_close_range, start, end >= kMostDescriptors ? last : stop - 1, flags) != 0)
      return -1;
    if (end >= kMostDescriptors || end >= last) break;
    start = end + 1;
  }
  return 0;
}

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
    if (key == "encrypt") settings.encrypt = value == "1";
    if (key == "record") settings.record = value;
    if (key == "board") settings.board = value;
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

/// Adds a window to the trace: how often each part was wanted. One write, so that the windows of several
/// processes do not mix; parts of different processes get different numbers.
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

/// All processes of a run share what it was given. Each may use what the others do not, and no less than an
/// equal share of it: so nobody starves, and together they use too much only while one makes room for
/// another.
std::uint64_t my_allowance(Library& me) {
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
  return me.allowance;
}

/// What the program uses beside managed memory comes out of the same allowance.
void tick(Library& me) {
  me.layout->look(*me.service);
  look_for_children(me);
  if (!me.settings.record.empty() && now_ns() >= me.next_window_ns) {
    record_window(me);
    me.next_window_ns = now_ns() + static_cast<std::uint64_t>(me.settings.interval * 1e9);
  }
  const ServiceStatistics now = me.service->statistics();
  const std::uint64_t whole = me.layout->resident_bytes(), managed = now.resident_pages * kPage;
  const std::uint64_t unmanaged = whole > managed ? whole - managed : 0;
  const std::uint64_t fast = my_allowance(me);
  me.service->set_limit(fast > unmanaged ? fast - unmanaged : 0);
  // Memory that malloc has just taken is not managed yet: only what lasts is worth a word.
  me.ticks_without_room = unmanaged >= fast ? me.ticks_without_room + 1 : 0;
  if (me.ticks_without_room == kTicksBeforeAWord)
    say(fmt::format(
        "this program uses {} that cannot be managed (files, stacks, shared memory), which is no less "
        "than --fast {}: give it more",
        readable(Bytes{unmanaged}), readable(Bytes{fast})));
  if (now.overdue_address != 0 && (me.row == nullptr || me.row->overdue != now.overdue_address))
    say(fmt::format(
        "a thread has waited for the page at {:#x} for more than a second: the disk is slow, or nobody "
        "serves it",
        now.overdue_address));
  report(me, now, unmanaged);
}

// ---- forks

void touch(const volatile void* address) {
  [[maybe_unused]] const volatile char ignored = *static_cast<const volatile char*>(address);
}

// Every open stream, whose locks a fork resets in the child, and the lock of their list.
extern "C" FILE* _IO_list_all;
extern "C" void _IO_list_lock();
extern "C" void _IO_list_unlock();

/// Whatever the C library touches in the child before our handler runs must be there when it forks.
void touch_what_a_fork_needs(Library& me) {
  me.layout->touch_arenas();
  _IO_list_lock();
  for (FILE* stream = _IO_list_all; stream != nullptr; stream = stream->_chain) {
    touch(stream);
    touch(reinterpret_cast<char*>(stream) + sizeof(FILE));
    if (stream->_lock != nullptr) touch(stream->_lock);
  }
  _IO_list_unlock();
  touch(reinterpret_cast<const void*>(pthread_self()));
}

/// A child has nobody who fetches its stack before our handler has run there.
__attribute__((noinline)) void touch_stack_below() {
  char stack[64 << 10];
  for (std::size_t i = 0; i < sizeof stack; i += kPage) *static_cast<volatile char*>(stack + i) = 0;
}

void before_fork() {
  Library* const me = library.load();
  if (me == nullptr) return;
  touch_stack_below();
  me->service->pause();
  touch_stack_below();
  if (pipe2(me->next_child, O_CLOEXEC) != 0) me->next_child[0] = me->next_child[1] = -1;
  for (int& end : me->next_child) end = out_of_the_way(end);
  touch_what_a_fork_needs(*me);
  me->service->before_fork();
}

void after_fork_in_parent() {
  Library* const me = library.load();
  if (me == nullptr) return;
  if (me->row != nullptr) ++me->row->forks;
  if (me->next_child[1] >= 0) close(me->next_child[1]);
  if (me->next_child[0] >= 0 && me->child_count < kMostChildren) {
    mark(me->next_child[0], true);
    me->children[me->child_count++] = me->next_child[0];
  } else {
    me->let_go_late = true;
  }
  me->service->after_fork_in_parent();
}

void after_fork_in_child() {
  Library* const me = library.load();
  if (me == nullptr) return;
  serves_own_memory = true;
  own_memory_in_child();
  // All but the stores are opened anew; the pipe to the parent stays open to the end.
  mark_all(*me, false);
  for (std::size_t i = 0; i < me->child_count; ++i) {
    mark(me->children[i], false);
    plain_close(me->children[i]);
  }
  mark(me->next_child[1], true);
  if (me->next_child[0] >= 0) close(me->next_child[0]);
  me->child_count = 0;
  take_row(*me);
  if (const auto reopened = me->service->reopen_in_child(); !reopened) {
    say("a forked process cannot be given its memory: " + reopened.error().message);
    _exit(1);
  }
  me->layout->register_all(*me->service);
  try {
    me->service->restart_in_child();
  } catch (const std::exception& error) {
    say(std::string("a forked process cannot be given its memory: ") + error.what());
    _exit(1);
  }
  serves_own_memory = false;
  // From here on the child's memory is there again. Without a store it keeps everything resident.
  try {
    me->service->open_store_in_child();
  } catch (const std::exception&) {
  }
  mark_all(*me, true);
}

// ---- start

/// The C library's malloc takes memory in larger steps, so that looking for it every few milliseconds will
/// do, and maps single blocks only if they are large.
void prepare_malloc() {
  mallopt(M_TOP_PAD, 16 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
}

Result<void> start_library(const char* text) {
  // Enough for tables of the most that can be managed, and for frames; addresses alone cost nothing.
  constexpr std::size_t kOwn = std::size_t{32} << 30;
  if (const int cause = reserve_own_memory(kOwn))
    return Error{ErrorCode::unsupported,
                 std::string("no addresses left (") + std::strerror(cause) + "): raise `ulimit -v`"};
  auto* const me = new Library;
  me->settings = read_settings(text);
  const Settings& settings = me->settings;
  std::vector<std::unique_ptr<Store>> stores;
  stores.reserve(kMostTiers);
  for (const SlowSetting& slow : settings.slow) {
    auto store = open_file_store({"file:" + slow.folder, slow.folder, Bytes{slow.room}, false});
    if (!store) return store.error();
    stores.push_back(settings.encrypt ? encrypted(*std::move(store)) : *std::move(store));
    if (stores.back() == nullptr)
      return Error{ErrorCode::unsupported, "this system has no random numbers for a key"};
  }
  open_board(*me);
  take_row(*me);
  me->layout.emplace();
  ServiceOptions options;
  options.fast_bytes = settings.fast;
  options.most_bytes = kMostManaged;
  options.policy = settings.policy;
  options.ownership = Ownership::a_program;
  options.workers = 6;
  options.overhead = settings.overhead / 100;
  options.interval_seconds = settings.interval;
  options.sample_always = options.log_faults = !settings.record.empty();
  options.tick = [] {
    if (Library* const now = library.load()) tick(*now);
  };
  options.lost = [](const std::string& sentence) { say(sentence); };
  auto service = Service::start(std::move(stores), std::move(options));
  if (!service) return service.error();
  me->service = *std::move(service);
  mark_all(*me, true);
  prepare_malloc();
  library = me;
  return {};
}

__attribute__((constructor)) void begin() {
  const char* const text = std::getenv(kRunVariable);
  if (text == nullptr) return;
  try {
    if (const auto started = start_library(text); !started)
      say("this program runs in ordinary memory: " + started.error().message);
  } catch (const std::exception& error) {
    say(std::string("this program runs in ordinary memory: ") + error.what());
  }
}

__attribute__((destructor)) void end() {
  Library* const me = library.load();
  if (me == nullptr) return;
  report(*me, me->service->statistics(), me->row ? me->row->unmanaged : 0);
  if (me->row != nullptr) me->row->ended = 1;
  if (me->settings.record.empty()) return;
  me->service->pause();  // from here on no tick takes faults
  record_window(*me);
}

bool may_be_managed(std::size_t bytes, int rights, int flags) {
  constexpr int kOther = MAP_SHARED | MAP_HUGETLB | MAP_LOCKED | MAP_STACK | MAP_GROWSDOWN;
  return bytes > 0 && rights == (PROT_READ | PROT_WRITE) && (flags & MAP_ANONYMOUS) != 0 &&
         (flags & MAP_PRIVATE) != 0 && (flags & (kOther & ~MAP_PRIVATE)) == 0 && (flags & MAP_POPULATE) == 0;
}

void* map(void* address, std::size_t bytes, int rights, int flags, int file, off_t offset) {
  const long result = syscall(SYS_mmap, address, bytes, rights, flags, file, offset);
  Library* const me = library.load(std::memory_order_relaxed);
  // What the kernel refuses here is tried again when the layout is looked at.
  if (result != -1 && me != nullptr && may_be_managed(bytes, rights, flags)) {
    const int before = errno;
    me->service->manage(static_cast<Address>(result), (bytes + kPage - 1) / kPage * kPage);
    errno = before;
  }
  return reinterpret_cast<void*>(result);
}

/// calloc() as it would be without us.
void* plain_calloc(std::size_t count, std::size_t bytes) {
  using Calloc = void* (*)(std::size_t, std::size_t);
  static std::atomic<Calloc> next{nullptr};
  if (next == nullptr) next = reinterpret_cast<Calloc>(dlsym(RTLD_NEXT, "calloc"));
  return next.load()(count, bytes);
}

using Register = int (*)(void (*)(), void (*)(), void (*)(), void*);

/// Our handlers are first in the list: in a child they run before any other.
void register_ours(Register plain) {
  static std::atomic_flag done = ATOMIC_FLAG_INIT;
  if (!done.test_and_set()) plain(before_fork, after_fork_in_parent, after_fork_in_child, nullptr);
}

Register plain_register() {
  static const auto next = reinterpret_cast<Register>(dlsym(RTLD_NEXT, "__register_atfork"));
  return next;
}

__attribute__((constructor)) void begin_forks() { register_ours(plain_register()); }

}  // namespace
}  // namespace terrace::pages

// ---- what stands in for the C library's functions

#pragma GCC visibility push(default)
extern "C" {

void* mmap(void* address, std::size_t bytes, int rights, int flags, int file, off_t offset) noexcept {
  return terrace::pages::map(address, bytes, rights, flags, file, offset);
}

void* mmap64(void* address, std::size_t bytes, int rights, int flags, int file, off64_t offset) noexcept {
  return terrace::pages::map(address, bytes, rights, flags, file, offset);
}

/// Huge pages would leave and come as a whole: managed memory has none.
int madvise(void* address, std::size_t bytes, int advice) noexcept {
  if (advice == MADV_HUGEPAGE && terrace::pages::library.load() != nullptr) return 0;
  return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
}

/// Threads of a forked child that serve its faults are started while nobody serves them yet.
void* calloc(std::size_t count, std::size_t bytes) {
  if (!terrace::pages::serves_own_memory.load(std::memory_order_relaxed))
    return terrace::pages::plain_calloc(count, bytes);
  void* const memory = ::operator new(count* bytes);
  return std::memset(memory, 0, count * bytes);
}

int close(int descriptor) {
  if (terrace::pages::is_ours(static_cast<unsigned>(descriptor))) return errno = EBADF, -1;
  return terrace::pages::plain_close(descriptor);
}

int close_range(unsigned first, unsigned last, int flags) noexcept {
  return terrace::pages::close_all(first, last, flags);
}

void closefrom(int first) noexcept {
  terrace::pages::close_all(static_cast<unsigned>(std::max(first, 0)), ~0U, 0);
}

/// A descriptor of ours cannot be replaced: memory would be written to the file that takes its number.
int dup2(int from, int to) noexcept {
  if (from == to) return fcntl(from, F_GETFD) < 0 ? -1 : to;
  return terrace::pages::copy_onto(from, to, 0);
}

int dup3(int from, int to, int flags) noexcept { return terrace::pages::copy_onto(from, to, flags); }

int __register_atfork(void (*before)(), void (*parent)(), void (*child)(), void* library) {
  terrace::pages::register_ours(terrace::pages::plain_register());
  return terrace::pages::plain_register()(before, parent, child, library);
}
}
#pragma GCC visibility pop
