#include "tiers/direct_io.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "terrace/error.hpp"

namespace terrace {
namespace {
using namespace literals;

// For smaller requests a file system locks and reads the rest of its own block, even where the disk accepts
// 512 bytes.
constexpr Bytes kLeastBlock = 4_KiB;
// Regions in memory are aligned to this anyway.
constexpr Bytes kLeastMemory = 64_B;

struct Asked {
  bool answered = false;
  bool supported = false;
  Alignment alignment;
};

Asked ask_kernel([[maybe_unused]] int descriptor) {
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) != 0) return {};
  if ((status.stx_mask & STATX_DIOALIGN) == 0) return {};
  const Bytes block{status.stx_dio_offset_align}, memory{status.stx_dio_mem_align};
  if (!std::has_single_bit(block.count) || !std::has_single_bit(memory.count)) return {true, false, {}};
  const Bytes least = std::max(block, kLeastBlock);
  return {true, true, {least, std::clamp(memory, kLeastMemory, least)}};
#else
  return {};
#endif
}

std::vector<Alignment> candidates(const Asked& asked) {
  std::vector<Alignment> list{{4_KiB, 512_B}, {4_KiB, 4_KiB}, {64_KiB, 64_KiB}};
  if (asked.answered) list.insert(list.begin(), asked.alignment);
  return list;
}

bool set_direct(int descriptor, bool on) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

// Reads the first block and writes it back through memory with exactly the given alignment. Returns 0 or an
// errno, which is EINVAL also where the file is shorter than the block.
int try_out(int descriptor, Alignment alignment) {
  const std::size_t block = alignment.block.count;
  const std::unique_ptr<std::byte, decltype(&std::free)> owner(
      static_cast<std::byte*>(std::aligned_alloc(2 * block, 2 * block)), &std::free);
  if (!owner) return ENOMEM;
  std::byte* memory = owner.get() + alignment.memory.count;
  const auto done = [block](ssize_t bytes) {
    return bytes == static_cast<ssize_t>(block) ? 0 : bytes < 0 ? errno : EINVAL;
  };
  int cause = EINTR;
  while (cause == EINTR) cause = done(pread(descriptor, memory, block, 0));
  if (cause != 0) return cause;
  cause = EINTR;
  while (cause == EINTR) cause = done(pwrite(descriptor, memory, block, 0));
  return cause;
}

}  // namespace

Alignment buffered_alignment() { return {kLeastBlock, kLeastMemory}; }

std::optional<Alignment> enable_direct_io(int descriptor, const std::string& tier, const std::string& path) {
  const Asked asked = ask_kernel(descriptor);
  // A file system may accept the flag and still use the page cache, so its declaration decides.
  if (asked.answered && !asked.supported) return std::nullopt;
  if (!set_direct(descriptor, true)) return std::nullopt;
  for (const Alignment& candidate : candidates(asked)) {
    const int cause = try_out(descriptor, candidate);
    if (cause == 0) return candidate;
    if (cause == EINVAL) continue;
    throw EnvironmentError(fmt::format("tier {}: reading and writing the first block of {} failed: {}; check "
                                       "the disk or name another",
                                       tier, path, std::strerror(cause)),
                           {tier, path, 0, cause});
  }
  set_direct(descriptor, false);
  return std::nullopt;
}

}  // namespace terrace
