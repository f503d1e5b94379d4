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
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "pages/compressed_store.hpp"
#include "pages/file_store.hpp"
#include "pages/out_of_the_way.hpp"
#include "pages/preload/descriptors.hpp"
#include "pages/preload/library.hpp"
#include "pages/preload/own_memory.hpp"

namespace terrace::pages {
namespace {

constexpr std::size_t kMostManaged = std::size_t{1} << 40;

std::atomic<Library*> library{nullptr};
std::atomic<bool> serves_own_memory{false};  // calloc() while a forked child starts its threads

void mark_all(const Library& me, bool mine) {
  me.service->each_descriptor([&](int descriptor) { mark(descriptor, mine); });
  me.layout->each_descriptor([&](int descriptor) { mark(descriptor, mine); });
  me.group->each_descriptor([&](int descriptor) { mark(descriptor, mine); });
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
  if (me->next_child[0] >= 0 && me->child_count < Library::kMostChildren) {
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
  me->growth.start();
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
  const double packed = static_cast<double>(settings.fast) * settings.packed / 100;
  if (auto store = packed > 0 ? compressed_store(Bytes{static_cast<std::uint64_t>(packed)}) : nullptr)
    stores.push_back(std::move(store));
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
  me->group.emplace(settings.group);
  if (!settings.group.empty() && !me->group->is_known()) {
    // Then nobody says what page tables, stacks and the command take of it.
    const std::size_t beside = settings.fast / 32 + (4U << 20);
    me->settings.fast -= std::min(settings.fast / 2, beside);
  }
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
    Library* const now = library.load();
    return now != nullptr && tick(*now);
  };
  if (me->board != nullptr) options.wakeful = &me->board->wakeful;
  options.lost = [](const std::string& sentence) { say(sentence); };
  auto service = Service::start(std::move(stores), std::move(options));
  if (!service) return service.error();
  me->service = *std::move(service);
  mark_all(*me, true);
  prepare_malloc();
  me->reads_headers = malloc_is_of_the_c_library();
  me->growth.start();
  // What is in use already is found, and taken off the allowance, before the program asks for more.
  tick(*me);
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

/// A function of malloc's family as it would be without us. A program may call it before anything has
/// started.
template <class Function>
class Plain {
 public:
  explicit constexpr Plain(const char* name) : name_(name) {}
  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    if (next_ == nullptr) next_ = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
    return next_.load()(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> next_{nullptr};
};

constinit Plain<void*(std::size_t)> plain_malloc("malloc");
constinit Plain<void*(std::size_t, std::size_t)> plain_calloc("calloc");
constinit Plain<void*(void*, std::size_t)> plain_realloc("realloc");
constinit Plain<void*(std::size_t, std::size_t)> plain_memalign("memalign");
constinit Plain<void*(std::size_t, std::size_t)> plain_aligned_alloc("aligned_alloc");
constinit Plain<int(void**, std::size_t, std::size_t)> plain_posix_memalign("posix_memalign");
constinit Plain<void*(std::size_t)> plain_valloc("valloc");

/// The program is about to get this block.
void* grown(void* block) {
  Library* const me = library.load(std::memory_order_relaxed);
  if (block == nullptr || me == nullptr || !me->reads_headers) return block;
  const int before = errno;
  me->growth.block(*me->service, block);
  errno = before;
  return block;
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

/// Huge pages would leave and come as a whole: managed memory has none. Hints are for us and for the kernel.
int madvise(void* address, std::size_t bytes, int advice) noexcept {
  using terrace::pages::Service;
  const terrace::pages::Library* const me = terrace::pages::library.load();
  if (advice == MADV_HUGEPAGE && me != nullptr) return 0;
  const auto start = reinterpret_cast<terrace::pages::Address>(address);
  if (me != nullptr && advice == MADV_WILLNEED) me->service->hint(start, bytes, Service::Hint::wanted_soon);
  if (me != nullptr && (advice == MADV_COLD || advice == MADV_PAGEOUT))
    me->service->hint(start, bytes, Service::Hint::not_wanted_soon);
  return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
}

void* malloc(std::size_t bytes) { return terrace::pages::grown(terrace::pages::plain_malloc(bytes)); }

void* realloc(void* block, std::size_t bytes) {
  const terrace::pages::Library* const me = terrace::pages::library.load(std::memory_order_relaxed);
  const bool asks = me != nullptr && me->reads_headers;
  const std::size_t copied = asks ? terrace::pages::copied_by_realloc(block, bytes) : 0;
  if (copied == 0) return terrace::pages::grown(terrace::pages::plain_realloc(block, bytes));
  void* const larger = malloc(bytes);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, block, copied);
  std::free(block);
  return larger;
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  return terrace::pages::grown(terrace::pages::plain_memalign(alignment, bytes));
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return terrace::pages::grown(terrace::pages::plain_aligned_alloc(alignment, bytes));
}

void* valloc(std::size_t bytes) { return terrace::pages::grown(terrace::pages::plain_valloc(bytes)); }

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  const int cause = terrace::pages::plain_posix_memalign(block, alignment, bytes);
  if (cause == 0) terrace::pages::grown(*block);
  return cause;
}

/// Threads of a forked child that serve its faults are started while nobody serves them yet.
void* calloc(std::size_t count, std::size_t bytes) {
  if (!terrace::pages::serves_own_memory.load(std::memory_order_relaxed))
    return terrace::pages::grown(terrace::pages::plain_calloc(count, bytes));
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
