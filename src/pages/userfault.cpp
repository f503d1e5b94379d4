// SPDX-License-Identifier: Apache-2.0
#include "pages/userfault.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "pages/out_of_the_way.hpp"

namespace terrace::pages {
namespace {

// Debian 12's headers are those of Linux 6.1: what later kernels added is declared here.
constexpr std::uint64_t kFeaturePoison = 1 << 14;
constexpr std::uint64_t kFeatureMove = 1 << 16;

struct MoveRequest {
  std::uint64_t to, from, bytes, mode;
  std::int64_t moved;
};
struct PoisonRequest {
  uffdio_range range;
  std::uint64_t mode;
  std::int64_t updated;
};
constexpr unsigned long kMove = _IOWR(UFFDIO, 0x05, MoveRequest);
constexpr unsigned long kPoison = _IOWR(UFFDIO, 0x08, PoisonRequest);

constexpr std::uint64_t kLayoutEvents =
    UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP;

/// Without the right to serve faults of system calls a program's read() into absent memory would fail.
int open_descriptor() {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
  const int direct = static_cast<int>(syscall(SYS_userfaultfd, kFlags));
  if (direct >= 0 || errno != EPERM) return out_of_the_way(direct);
  const int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (device < 0) return errno = EPERM, -1;
  constexpr unsigned long kNew = _IO(0xAA, 0x00);  // USERFAULTFD_IOC_NEW, Linux 6.1
  const int made = ioctl(device, kNew, kFlags);
  const int cause = errno;
  close(device);
  errno = cause;
  return out_of_the_way(made);
}

Error refusal(int cause) {
  if (cause == EPERM)
    return {ErrorCode::unsupported,
            "this user may not use userfaultfd: an administrator allows it with `sysctl "
            "vm.unprivileged_userfaultfd=1`, or by giving a group access to /dev/userfaultfd"};
  if (cause == ENOSYS)
    return {ErrorCode::unsupported, "this kernel has no userfaultfd: use one with CONFIG_USERFAULTFD"};
  return {ErrorCode::unsupported, std::string("userfaultfd failed (") + std::strerror(cause) +
                                      "): check the limits on open files and the system's log"};
}

Result<UserfaultFeatures> features_of(int descriptor) {
  uffdio_api api{UFFD_API, 0, 0};
  if (ioctl(descriptor, UFFDIO_API, &api) != 0) return refusal(errno);
  return UserfaultFeatures{(api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP) != 0,
                           (api.features & kFeaturePoison) != 0, (api.features & kFeatureMove) != 0};
}

}  // namespace

Result<UserfaultFeatures> probe_userfault() {
  const int descriptor = open_descriptor();
  if (descriptor < 0) return refusal(errno);
  auto features = features_of(descriptor);
  close(descriptor);
  return features;
}

Result<Userfault> Userfault::open(Ownership ownership, Leaving leaving) {
  auto features = probe_userfault();
  if (!features) return features.error();
  if (leaving == Leaving::copied) features->moves = false;
  if (!features->protects)
    return Error{ErrorCode::unsupported,
                 "this kernel's userfaultfd cannot write-protect pages: Linux 5.7 or later can"};
  if (ownership == Ownership::a_program && !features->moves)
    return Error{ErrorCode::unsupported,
                 "this kernel cannot move pages out of a running program (UFFDIO_MOVE): Linux 6.8 or later "
                 "can"};
  const int descriptor = open_descriptor();
  if (descriptor < 0) return refusal(errno);
  Userfault opened(descriptor, *features);
  std::uint64_t wanted = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (features->moves) wanted |= kFeatureMove;
  if (features->poisons) wanted |= kFeaturePoison;
  if (ownership == Ownership::a_program) wanted |= kLayoutEvents;
  uffdio_api api{UFFD_API, wanted, 0};
  if (ioctl(descriptor, UFFDIO_API, &api) != 0) return refusal(errno);
  return opened;
}

Userfault::Userfault(Userfault&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), features_(other.features_) {}

Userfault& Userfault::operator=(Userfault&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(features_, other.features_);
  return *this;
}

Userfault::~Userfault() {
  if (descriptor_ >= 0) close(descriptor_);
}

int Userfault::manage(Address start, std::size_t bytes) const {
  uffdio_register request{{start, bytes}, UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP, 0};
  return ioctl(descriptor_, UFFDIO_REGISTER, &request) == 0 ? 0 : errno;
}

int Userfault::manage_staging(Address start, std::size_t bytes) const {
  if (!features_.moves) return 0;
  uffdio_register request{{start, bytes}, UFFDIO_REGISTER_MODE_MISSING, 0};
  return ioctl(descriptor_, UFFDIO_REGISTER, &request) == 0 ? 0 : errno;
}

Event Userfault::read() const {
  uffd_msg message{};
  if (::read(descriptor_, &message, sizeof message) != sizeof message) return {};
  switch (message.event) {
    case UFFD_EVENT_PAGEFAULT: {
      const auto& fault = message.arg.pagefault;
      const bool protection = (fault.flags & UFFD_PAGEFAULT_FLAG_WP) != 0;
      return {protection ? Event::Kind::write : Event::Kind::missing, Address{fault.address}, 0, 0,
              (fault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0};
    }
    case UFFD_EVENT_REMOVE:
    case UFFD_EVENT_UNMAP: {
      const auto& range = message.arg.remove;
      return {message.event == UFFD_EVENT_REMOVE ? Event::Kind::removed : Event::Kind::unmapped,
              Address{range.start}, 0, range.end - range.start};
    }
    case UFFD_EVENT_REMAP: {
      const auto& moved = message.arg.remap;
      return {Event::Kind::remapped, Address{moved.from}, Address{moved.to}, moved.len};
    }
    default:
      return {};
  }
}

namespace {

/// Asks the kernel for one run of pages, and goes on after the part it did. `once(first, count, done)` is one
/// request: it returns 0 or an errno and says how many bytes were done. A run that straddles two mappings is
/// refused whole, so it is then asked page by page.
template <class Once>
PagesDone by_runs(PageMask pages, Once once) {
  PagesDone result;
  const auto mark = [&](std::size_t first, std::size_t count) {
    result.pages = static_cast<PageMask>(result.pages | ((1U << count) - 1) << first);
  };
  each_run(pages, [&](std::size_t first, std::size_t count) {
    std::size_t at = first, ask = count;
    while (at < first + count) {
      std::int64_t done = 0;
      const int cause = once(at, std::min(ask, first + count - at), done);
      if (done > 0) {
        mark(at, static_cast<std::size_t>(done) / kPage);
        at += static_cast<std::size_t>(done) / kPage;
        continue;
      }
      if (cause == EAGAIN) return result.again = true, false;
      if (cause == ENOMEM) return result.no_memory = true, false;
      if (cause == EEXIST) {
        mark(at, 1);
        result.existed = static_cast<PageMask>(result.existed | 1U << at);
      }
      if (ask > 1 && cause != EEXIST) {
        ask = 1;
      } else {
        if (cause == ENOENT) result.absent = static_cast<PageMask>(result.absent | 1U << at);
        ++at;
      }
    }
    return true;
  });
  return result;
}

/// Moves pages and wakes nobody. Returns 0 or an errno; `done` says how many bytes were moved.
int move(int descriptor, Address to, Address from, std::size_t bytes, std::int64_t& done) {
  constexpr std::uint64_t kDontWake = 1;  // UFFDIO_MOVE_MODE_DONTWAKE
  MoveRequest request{to, from, bytes, kDontWake, 0};
  const int cause = ioctl(descriptor, kMove, &request) == 0 ? 0 : errno;
  done = request.moved;
  return cause;
}

}  // namespace

PagesDone Userfault::fill(Address part, PageMask pages, const std::byte* data, Protection protection) {
  const std::uint64_t mode = UFFDIO_COPY_MODE_DONTWAKE |
                             (protection == Protection::read_only ? UFFDIO_COPY_MODE_WP : std::uint64_t{0});
  return by_runs(pages, [&](std::size_t first, std::size_t count, std::int64_t& done) {
    uffdio_copy request{part + first * kPage, reinterpret_cast<std::uint64_t>(data) + first * kPage,
                        count * kPage, mode, 0};
    const int cause = ioctl(descriptor_, UFFDIO_COPY, &request) == 0 ? 0 : errno;
    done = request.copy;
    return cause;
  });
}

PagesDone Userfault::take(Address part, PageMask pages, std::byte* frame) {
  if (!features_.moves) return take_by_copying(part, pages, frame);
  return by_runs(pages, [&](std::size_t first, std::size_t count, std::int64_t& done) {
    const std::size_t at = first * kPage;
    const int cause =
        move(descriptor_, reinterpret_cast<Address>(frame) + at, part + at, count * kPage, done);
    return cause == EEXIST ? EINVAL : cause;  // an occupied frame is no page taken
  });
}

PagesDone Userfault::put_back(Address part, PageMask pages, std::byte* frame) {
  if (!features_.moves) return {};
  return by_runs(pages, [&](std::size_t first, std::size_t count, std::int64_t& done) {
    const std::size_t at = first * kPage;
    return move(descriptor_, part + at, reinterpret_cast<Address>(frame) + at, count * kPage, done);
  });
}

PagesDone Userfault::take_by_copying(Address part, PageMask pages, std::byte* frame) {
  PagesDone result;
  if (protect(part, kPart, Protection::read_only) != 0) return result;
  each_run(pages, [&](std::size_t first, std::size_t count) {
    auto* from = reinterpret_cast<std::byte*>(part) + first * kPage;
    std::memcpy(frame + first * kPage, from, count * kPage);
    madvise(from, count * kPage, MADV_DONTNEED);
    return true;
  });
  result.pages = pages;
  return result;
}

int Userfault::protect(Address start, std::size_t bytes, Protection protection) const {
  uffdio_writeprotect request{
      {start, bytes}, protection == Protection::read_only ? UFFDIO_WRITEPROTECT_MODE_WP : std::uint64_t{0}};
  return ioctl(descriptor_, UFFDIO_WRITEPROTECT, &request) == 0 ? 0 : errno;
}

bool Userfault::unprotect(Address part, PageMask pages) {
  bool again = false;
  each_run(pages, [&](std::size_t first, std::size_t count) {
    const int cause = protect(part + first * kPage, count * kPage, Protection::writable);
    again = cause == EAGAIN;
    // A part that reaches over the end of a mapping is opened page by page.
    for (std::size_t i = first; cause != 0 && !again && i < first + count; ++i)
      protect(part + i * kPage, kPage, Protection::writable);
    return !again;
  });
  return !again;
}

void Userfault::wake(Address part) {
  uffdio_range range{part, kPart};
  ioctl(descriptor_, UFFDIO_WAKE, &range);
}

void Userfault::poison(Address part, PageMask pages) {
  bool poisoned = features_.poisons;
  each_run(pages, [&](std::size_t first, std::size_t count) {
    PoisonRequest request{{part + first * kPage, count * kPage}, 0, 0};
    if (poisoned && ioctl(descriptor_, kPoison, &request) != 0) poisoned = false;
    return true;
  });
  if (!poisoned) kill(getpid(), SIGBUS);
}

}  // namespace terrace::pages
