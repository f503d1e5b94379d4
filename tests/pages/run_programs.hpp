// SPDX-License-Identifier: Apache-2.0
// Small programs that `terrace run` is tried on. Each prints what it found, so that two runs can be compared;
// none of them knows anything of Terrace.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"

namespace terrace::test {

constexpr std::size_t kOnePage = 4096;

inline std::uint64_t hash_of(const unsigned char* data, std::size_t bytes,
                             std::uint64_t hash = 1469598103934665603U) {
  for (std::size_t i = 0; i < bytes; i += 61) hash = (hash ^ data[i]) * 1099511628211U;
  return hash;
}

/// Calls of the mmap family and of malloc at random. What the memory holds goes into a checksum.
class MemoryCalls {
 public:
  explicit MemoryCalls(std::uint64_t seed) : random_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      step();
      if (i % 500 == 499) std::printf("%d %016llx\n", i, static_cast<unsigned long long>(checksum_));
    }
    for (const Piece& piece : pieces_) read(piece, 0, piece.bytes);
    std::printf("end %016llx\n", static_cast<unsigned long long>(checksum_));
  }

 private:
  struct Piece {
    unsigned char* start = nullptr;
    std::size_t bytes = 0;
    bool mapped = true;
    bool patched = false;  ///< it may be several mappings, which mremap refuses
  };

  [[noreturn]] static void fail(const char* call) {
    std::perror(call);
    std::abort();
  }
  std::size_t pages(std::size_t most) { return (1 + random_.below(most)) * kOnePage; }
  void read(const Piece& piece, std::size_t at, std::size_t bytes) {
    checksum_ = hash_of(piece.start + at, bytes, checksum_);
  }

  void make() {
    if (total_ > (std::size_t{48} << 20)) return drop();
    Piece piece;
    piece.mapped = random_.below(3) != 0;
    piece.bytes = pages(random_.below(4) == 0 ? 1500 : 100);
    if (piece.mapped) {
      void* const start =
          mmap(nullptr, piece.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (start == MAP_FAILED) fail("mmap");
      piece.start = static_cast<unsigned char*>(start);
    } else {
      piece.start = static_cast<unsigned char*>(std::calloc(piece.bytes, 1));
    }
    total_ += piece.bytes;
    pieces_.push_back(piece);
  }

  void drop() {
    const std::size_t i = random_.below(pieces_.size());
    const Piece piece = pieces_[i];
    read(piece, 0, piece.bytes);
    if (piece.mapped)
      munmap(piece.start, piece.bytes);
    else
      std::free(piece.start);
    total_ -= piece.bytes;
    pieces_[i] = pieces_.back();
    pieces_.pop_back();
  }

  void resize(Piece& piece) {
    if (piece.patched) return;
    const std::size_t bytes = pages(300);
    void* moved = nullptr;
    if (piece.mapped) {
      moved = mremap(piece.start, piece.bytes, bytes, MREMAP_MAYMOVE);
      if (moved == MAP_FAILED) fail("mremap");
    } else {
      moved = std::realloc(piece.start, bytes);
      // What realloc adds is whatever it is.
      if (bytes > piece.bytes) std::memset(static_cast<char*>(moved) + piece.bytes, 0, bytes - piece.bytes);
    }
    total_ = total_ - piece.bytes + bytes;
    piece.start = static_cast<unsigned char*>(moved);
    piece.bytes = bytes;
  }

  void step() {
    if (pieces_.size() < 4 || random_.below(12) == 0) return make();
    Piece& piece = pieces_[random_.below(pieces_.size())];
    const std::size_t at = random_.below(piece.bytes), left = piece.bytes - at;
    const std::size_t bytes =
        1 + random_.below(std::min<std::size_t>(left, random_.below(4) == 0 ? 200000 : 3000));
    const std::size_t page = at / kOnePage * kOnePage;
    const std::size_t whole = std::min(piece.bytes - page, (bytes + kOnePage - 1) / kOnePage * kOnePage);
    switch (random_.below(16)) {
      case 0:
        return drop();
      case 1:
        return resize(piece);
      case 2:
        if (piece.mapped && madvise(piece.start + page, whole, MADV_DONTNEED) != 0) fail("madvise");
        return;
      case 3:
        if (!piece.mapped) return;
        mprotect(piece.start + page, whole, PROT_READ);
        read(piece, page, whole);
        mprotect(piece.start + page, whole, PROT_READ | PROT_WRITE);
        piece.patched = true;
        return;
      case 4:  // a new mapping in the middle of another
        if (!piece.mapped) return;
        if (mmap(piece.start + page, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0) == MAP_FAILED)
          fail("mmap of a fixed place");
        piece.patched = true;
        return;
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
        std::memset(piece.start + at, static_cast<int>(random_.below(256)), bytes);
        return;
      default:
        return read(piece, at, bytes);
    }
  }

  SplitMix random_;
  std::vector<Piece> pieces_;
  std::size_t total_ = 0;
  std::uint64_t checksum_ = 0;
};

/// Fills memory, forks, and lets both processes look at all of it and change it.
inline int fork_program() {
  constexpr std::size_t kBytes = std::size_t{24} << 20;
  auto* const memory = static_cast<unsigned char*>(std::malloc(kBytes));
  for (std::size_t i = 0; i < kBytes; ++i) memory[i] = static_cast<unsigned char>(i >> 7);
  const std::uint64_t before = hash_of(memory, kBytes);
  const pid_t child = fork();
  if (child == 0) {
    const bool same = hash_of(memory, kBytes) == before;
    std::memset(memory, 5, kBytes / 2);
    const std::uint64_t half = hash_of(memory + kBytes / 2, kBytes / 2);
    const std::uint64_t again = hash_of(memory + kBytes / 2, kBytes / 2);
    const bool changed = memory[0] == 5 && memory[kBytes / 2 - 1] == 5;
    std::_Exit(same && changed && half == again ? 0 : 1);
  }
  for (std::size_t i = 0; i < kBytes; i += 4096) memory[i] = 9;  // the child must not see this
  int status = 0;
  waitpid(child, &status, 0);
  bool kept = true;
  for (std::size_t i = 0; i < kBytes; ++i)
    kept = kept && memory[i] == (i % 4096 == 0 ? 9 : static_cast<unsigned char>(i >> 7));
  std::printf("child %s, parent %s\n", status == 0 ? "right" : "wrong", kept ? "right" : "wrong");
  return 0;
}

inline bool resident(const void* place) {
  unsigned char is_there = 1;
  mincore(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(place) / kOnePage * kOnePage), kOnePage,
          &is_there);
  return is_there != 0;
}

/// Counts what is wrong again and again until some memory is not resident, or for a while where nobody
/// evicts, and then thrice more. How soon a program's memory is managed is a matter of time; what the tests
/// count must not be.
template <class Count, class Evicted>
std::size_t look_until_evicted(Count count_wrong, Evicted some_is_evicted) {
  std::size_t wrong = 0;
  for (int left = 60; left > 0; --left) {
    wrong += count_wrong();
    if (left <= 4) continue;
    if (some_is_evicted()) left = 4;
    usleep(5000);
  }
  return wrong;
}

inline std::size_t count_other_than(const std::vector<unsigned>& numbers, std::size_t offset) {
  return look_until_evicted(
      [&] {
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < numbers.size(); ++i) wrong += numbers[i] != i + offset;
        return wrong;
      },
      [&] {
        for (std::size_t i = 0; i < numbers.size(); i += kOnePage)
          if (!resident(&numbers[i])) return true;
        return false;
      });
}

inline int thread_program() {
  std::vector<std::thread> threads;
  std::vector<std::size_t> wrong(4);
  for (std::size_t number = 0; number < wrong.size(); ++number) {
    threads.emplace_back([&, number] {
      std::vector<std::string> texts;
      for (int i = 0; i < 60000; ++i)
        texts.push_back("a text that is too long to be short " + std::to_string(i));
      wrong[number] = look_until_evicted(
          [&] {
            std::size_t different = 0;
            for (int i = 0; i < 60000; ++i)
              different += texts[i] != "a text that is too long to be short " + std::to_string(i);
            return different;
          },
          [&] {
            for (std::size_t i = 0; i < texts.size(); i += 100)
              if (!resident(texts[i].data())) return true;
            return false;
          });
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("wrong: %zu\n", wrong[0] + wrong[1] + wrong[2] + wrong[3]);
  return 0;
}

/// Closes every descriptor it can, as programs do that go into the background, and then looks at its memory.
inline int closing_program() {
  std::vector<unsigned> numbers(6 << 20);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<unsigned>(i);
  for (int descriptor = 3; descriptor < 256; ++descriptor) close(descriptor);
  if (close_range(3, ~0U, 0) != 0) return 3;
  closefrom(3);
  std::printf("wrong: %zu\n", count_other_than(numbers, 0));
  return 0;
}

/// Gives many descriptors a file of its own, as shells do, and then looks at its memory and at the file.
inline int copying_program() {
  std::vector<unsigned> numbers(6 << 20);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<unsigned>(i);
  std::FILE* const file = std::tmpfile();
  for (int descriptor = 3; descriptor <= 20; ++descriptor) {
    if (descriptor != fileno(file) && dup2(fileno(file), descriptor) != descriptor) return 3;
  }
  // Those of a library that is loaded into the program may refuse.
  for (int descriptor = 21; descriptor < 1000; ++descriptor) dup3(fileno(file), descriptor, O_CLOEXEC);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) wrong += numbers[i]++ != i;
  wrong += count_other_than(numbers, 1);
  std::fseek(file, 0, SEEK_END);
  std::printf("wrong: %zu, file: %ld, itself: %d %d\n", wrong, std::ftell(file), dup2(1, 1), dup2(999, 999));
  errno = 0;
  const int refused = close_range(9, 3, 0);
  std::printf("%d %d\n", refused, errno == EINVAL);
  return 0;
}

/// Threads fill arenas of malloc; then the process forks, which locks all of these.
inline int arena_program() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int block = 0; block < 8000; ++block) std::memset(std::malloc(1000), 1, 1000);
    });
  for (std::thread& thread : threads) thread.join();
  int wrong = 0;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) std::_Exit(std::malloc(100000) == nullptr);
    int status = 0;
    waitpid(child, &status, 0);
    wrong += status != 0;
  }
  std::printf("wrong: %d\n", wrong);
  return 0;
}

/// Blocks of malloc that come and go, each filled with a number of its own.
class Blocks {
 public:
  explicit Blocks(std::uint64_t seed) : random_(seed) {}
  ~Blocks() {
    for (Block& block : blocks_) std::free(block.start);
  }

  /// Replaces one block and looks whether it held what it should. Returns whether it did.
  bool step() {
    Block& block = blocks_[random_.below(blocks_.size())];
    bool right = true;
    for (std::size_t i = 0; i < block.bytes; i += 512) right = right && block.start[i] == block.value;
    std::free(block.start);
    block.bytes = 1 + random_.below(40000);
    block.value = static_cast<unsigned char>(random_.next());
    block.start = static_cast<unsigned char*>(std::malloc(block.bytes));
    std::memset(block.start, block.value, block.bytes);
    return right;
  }

 private:
  struct Block {
    unsigned char* start = nullptr;
    std::size_t bytes = 0;
    unsigned char value = 0;
  };
  SplitMix random_;
  std::vector<Block> blocks_{std::vector<Block>(300)};
};

/// Forks again and again while other threads are inside malloc, whose locks a fork takes. The memory does not
/// fit, so they wait for pages while they hold these locks.
inline int forking_program(int forks) {
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 3; ++number) {
    threads.emplace_back([&, number] {
      Blocks blocks(number);
      while (!over) wrong += !blocks.step();
    });
  }
  Blocks mine(99);
  for (int i = 0; i < forks; ++i) {
    for (int step = 0; step < 10; ++step) wrong += !mine.step();
    const pid_t child = fork();
    if (child == 0) {
      int found = 0;
      for (int step = 0; step < 50; ++step) found += !mine.step();
      std::_Exit(found != 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    wrong += status != 0;
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("wrong: %d\n", wrong.load());
  return 0;
}

/// Frees a large block and gets one at the same place at once. What the second one holds does not fit.
inline int reusing_program() {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  auto* const first = static_cast<unsigned char*>(std::malloc(kBytes));
  for (std::size_t i = 0; i < kBytes; i += 64) static_cast<volatile unsigned char*>(first)[i] = 1;
  usleep(100000);
  const auto place = reinterpret_cast<std::uintptr_t>(first);
  std::free(first);
  auto* const second = static_cast<unsigned char*>(std::malloc(kBytes));
  for (std::size_t i = 0; i < kBytes; i += 64) second[i] = static_cast<unsigned char>(i >> 12);
  usleep(100000);
  int wrong = 0;
  for (int sweep = 0; sweep < 2; ++sweep) {
    for (std::size_t i = 0; i < kBytes; i += 64) wrong += second[i] != static_cast<unsigned char>(i >> 12);
  }
  std::printf("same place: %d, wrong: %d\n", reinterpret_cast<std::uintptr_t>(second) == place, wrong);
  return 0;
}

/// A program of one thread that opens one file at a time gets the same number each time.
inline int numbering_program() {
  const int first = open("/dev/null", O_RDONLY);
  close(first);
  int others = 0;
  for (int i = 0; i < 50000; ++i) {
    const int next = open("/dev/null", O_RDONLY);
    others += next != first;
    close(next);
  }
  std::printf("other numbers: %d\n", others);
  return 0;
}

/// Its disk fails: another file takes the place of every open one on a disk that has no name any more, and
/// answers with EIO wherever no memory is mapped. Then memory that has left is read.
inline int spoiling_program() {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  auto* const bytes = static_cast<unsigned char*>(std::malloc(kBytes));
  for (std::size_t i = 0; i < kBytes; i += 64) bytes[i] = 1;
  const int broken = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    char target[512];
    const ssize_t length = readlink(link.c_str(), target, sizeof target);
    const std::string file(target, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    if (file.find("(deleted)") == file.npos || file.starts_with("/memfd:")) continue;
    if (syscall(SYS_dup3, broken, descriptor, O_CLOEXEC) < 0) std::perror("dup3");
  }
  int wrong = 0;
  for (std::size_t i = 0; i < kBytes; i += 64) wrong += static_cast<volatile unsigned char*>(bytes)[i] != 1;
  std::printf("nothing was lost, wrong: %d\n", wrong);
  return 0;
}

/// Reads 48 MiB of files through mappings, this program's own file again and again, and works on 8 MiB of its
/// own.
inline int mapping_program() {
  const int file = open("/proc/self/exe", O_RDONLY);
  const std::size_t bytes = static_cast<std::size_t>(lseek(file, 0, SEEK_END));
  unsigned sum = 0;
  for (std::size_t mapped = 0; mapped < std::size_t{48} << 20; mapped += bytes) {
    const void* const start = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (start == MAP_FAILED) return 1;
    for (std::size_t i = 0; i < bytes; i += kOnePage)
      sum += static_cast<const volatile unsigned char*>(start)[i];
  }
  std::vector<unsigned char> own(std::size_t{8} << 20);
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i < own.size(); i += kOnePage) ++own[i];
    usleep(500);
  }
  const bool right = std::all_of(own.begin(), own.end(), [&](unsigned char& byte) {
    return byte == (static_cast<std::size_t>(&byte - own.data()) % kOnePage == 0 ? 200 : 0);
  });
  std::printf("%s\n", right && sum > 0 ? "right" : "wrong");
  return 0;
}

/// Fills 64 MiB with numbers that do not repeat, and reads them in any order, some of them again to write.
/// Takes memory as fast as it can, by blocks that double and by many small ones.
inline int growing_program() {
  std::size_t bytes = std::size_t{1} << 20;
  auto* block = static_cast<unsigned char*>(std::malloc(bytes));
  std::memset(block, 7, bytes);
  for (; bytes < std::size_t{128} << 20; bytes *= 2) {
    block = static_cast<unsigned char*>(std::realloc(block, 2 * bytes));
    std::memset(block + bytes, 7, bytes);
  }
  std::vector<unsigned char*> small(48 << 10);
  for (unsigned char*& piece : small)
    std::memset(piece = static_cast<unsigned char*>(std::malloc(1000)), 8, 1000);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < bytes; ++i) wrong += block[i] != 7;
  for (const unsigned char* piece : small) wrong += piece[999] != 8;
  std::printf("wrong: %zu\n", wrong);
  return 0;
}

inline int filling_program() {
  constexpr std::size_t kWords = kOnePage / sizeof(std::uint64_t),
                        kPages = (std::size_t{64} << 20) / kOnePage;
  // Memory is managed a few milliseconds after it was mapped.
  const std::size_t bytes = kPages * kOnePage;
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return 1;
  auto* const words = static_cast<std::uint64_t*>(start);
  usleep(100'000);
  std::vector<std::uint64_t> seeds(kPages);
  SplitMix random(6);
  const auto fill = [&](std::size_t page, std::uint64_t seed) {
    SplitMix numbers(seeds[page] = seed);
    for (std::size_t i = 0; i < kWords; ++i) words[page * kWords + i] = numbers.next();
  };
  for (std::size_t page = 0; page < kPages; ++page) fill(page, page);
  int wrong = 0;
  for (int visit = 0; visit < 3000; ++visit) {
    const std::size_t page = random.below(kPages);
    SplitMix numbers(seeds[page]);
    for (std::size_t i = 0; i < kWords; ++i) wrong += words[page * kWords + i] != numbers.next();
    if (visit % 3 == 0) fill(page, random.next());
  }
  std::printf("wrong: %d\n", wrong);
  return 0;
}

/// Works on 40 MiB of pages that repeat a few words each, in any order.
inline int repeating_program() {
  constexpr std::size_t kWords = kOnePage / sizeof(std::uint64_t),
                        kPages = (std::size_t{40} << 20) / kOnePage;
  std::vector<std::uint64_t> words(kPages * kWords);
  std::vector<std::uint64_t> last(kPages);
  const auto expected = [&](std::size_t page, std::size_t word) {
    return last[page] * 977 + page * 16 + word % 16;
  };
  SplitMix random(5);
  int wrong = 0;
  for (std::uint64_t visit = 1; visit <= 3 * kPages; ++visit) {
    const std::size_t page = visit <= kPages ? visit - 1 : random.below(kPages);
    std::uint64_t* const start = &words[page * kWords];
    for (std::size_t i = 0; visit > kPages && i < kWords; ++i) wrong += start[i] != expected(page, i);
    if (visit > kPages && visit % 2 == 0) continue;  // some are only read
    last[page] = visit;
    for (std::size_t i = 0; i < kWords; ++i) start[i] = expected(page, i);
  }
  std::printf("wrong: %d\n", wrong);
  return 0;
}

/// `NAME`, `calls:SEED:OPERATIONS` or `forking:FORKS`.
inline int run_program(const std::string& what) {
  if (what == "fork") return fork_program();
  if (what == "threads") return thread_program();
  if (what == "closing") return closing_program();
  if (what == "copying") return copying_program();
  if (what == "arenas") return arena_program();
  if (what == "reusing") return reusing_program();
  if (what == "numbering") return numbering_program();
  if (what == "spoiling") return spoiling_program();
  if (what == "repeating") return repeating_program();
  if (what == "filling") return filling_program();
  if (what == "growing") return growing_program();
  if (what == "mapping") return mapping_program();
  if (what == "exit7") return 7;
  if (what.starts_with("forking:")) return forking_program(std::stoi(what.substr(8)));
  const std::size_t colon = what.find(':', 6);
  MemoryCalls(std::stoull(what.substr(6, colon - 6))).run(std::stoi(what.substr(colon + 1)));
  return 0;
}

}  // namespace terrace::test
