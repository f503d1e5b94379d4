#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "base/scratch_file.hpp"
#include "base/system_storage.hpp"

namespace terrace {
namespace {

using namespace literals;
using Clock = std::chrono::steady_clock;

constexpr Bytes kBlock = 4_MiB;
constexpr std::size_t kInFlight = 4;  // with a single request in flight a fast disk idles between two
constexpr double kPasses = 3;

struct alignas(4096) Block {
  std::byte bytes[kBlock.count];
};

// Fills a block with contents that a disk cannot compress.
void fill(Block& block) {
  std::uint64_t word = 1;
  for (std::size_t at = 0; at < kBlock.count; at += sizeof word) {
    word = word * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(block.bytes + at, &word, sizeof word);
  }
}

enum class Pass { write, read };

struct Outcome {
  std::uint64_t blocks = 0;  ///< blocks done, contiguous from the first
  Seconds took{0};
  int error = 0;

  BytesPerSecond rate() const { return kBlock * blocks / took; }
};

int transfer(Pass pass, int descriptor, Block& block, std::uint64_t index) {
  const auto offset = static_cast<off_t>(index * kBlock.count);
  const ssize_t moved = pass == Pass::write ? pwrite(descriptor, block.bytes, kBlock.count, offset)
                                            : pread(descriptor, block.bytes, kBlock.count, offset);
  if (moved < 0) return errno;
  return moved == static_cast<ssize_t>(kBlock.count) ? 0 : EIO;
}

// Several threads take the next block in turn; the caller's thread is one of them and reports the progress.
Outcome run_pass(Pass pass, int descriptor, std::vector<Block>& buffers, std::uint64_t blocks,
                 Seconds patience, const Progress& progress) {
  std::atomic<std::uint64_t> next = 0, done = 0;
  std::atomic<int> error = 0;
  const auto start = Clock::now();
  const auto work = [&](Block& buffer, const Progress& tell) {
    while (error == 0 && Clock::now() - start < patience) {
      const std::uint64_t index = next++;
      if (index >= blocks) return;
      if (const int failed = transfer(pass, descriptor, buffer, index)) error = failed;
      ++done;
      if (tell) tell(static_cast<double>(done) / static_cast<double>(blocks));
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < buffers.size(); ++i) {
      helpers.emplace_back([&, i] { work(buffers[i], nullptr); });
    }
    work(buffers[0], progress);
  }
  return {done, Clock::now() - start, error};
}

Error cannot_measure(const std::filesystem::path& folder, int cause) {
  return {ErrorCode::unsupported,
          fmt::format("the disk at {} could not be measured: {}", folder.native(), std::strerror(cause))};
}

}  // namespace

Result<DiskSpeed> measure_disk(const std::filesystem::path& folder, Bytes amount, Seconds patience,
                               const Progress& progress) {
  auto file = ScratchFile::create(folder);
  if (!file) return file.error();
  const int descriptor = file->descriptor();
  if (const int refused = file->go_direct()) return cannot_measure(folder, refused);
  const std::uint64_t blocks = std::max<std::uint64_t>(1, amount / kBlock);
  if (const int full = posix_fallocate(descriptor, 0, static_cast<off_t>(blocks * kBlock.count))) {
    return cannot_measure(folder, full);
  }

  std::vector<Block> buffers(kInFlight);
  for (Block& buffer : buffers) fill(buffer);
  int pass_number = 0;
  Outcome last{blocks, Seconds{0}, 0};
  // Each pass covers the blocks that the previous pass completed.
  const auto pass = [&](Pass kind) {
    const auto tell = [&](double share) {
      if (progress) progress((pass_number + share) / kPasses);
    };
    last = run_pass(kind, descriptor, buffers, last.blocks, patience, tell);
    ++pass_number;
    return last;
  };
  const Outcome first = pass(Pass::write);
  if (first.error != 0) return cannot_measure(folder, first.error);
  const Outcome write = pass(Pass::write);
  if (write.error != 0) return cannot_measure(folder, write.error);
  const Outcome read = pass(Pass::read);
  if (read.error != 0) return cannot_measure(folder, read.error);
  return DiskSpeed{kBlock * read.blocks, write.rate(), read.rate()};
}

}  // namespace terrace
