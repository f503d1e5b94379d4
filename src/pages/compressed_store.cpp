// SPDX-License-Identifier: Apache-2.0
#include "pages/compressed_store.hpp"

#include "pages/reserved.hpp"

#ifdef TERRACE_HAS_LZ4
#include <lz4.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#endif

namespace terrace::pages {

#ifdef TERRACE_HAS_LZ4
namespace {

constexpr std::size_t kSpan = 64 << 10;
constexpr std::size_t kStep = 128;                  // sizes of blocks are multiples of it
constexpr std::size_t kSizes = kPage / kStep;       // the largest holds a page as it is
constexpr std::size_t kWords = kSpan / kStep / 64;  // bits for the blocks of a span
constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Gives out blocks of a range of memory. The caller guards it.
class Blocks {
 public:
  explicit Blocks(Bytes room)
      : memory_(std::max<std::size_t>(room.count / kSpan, 1) * kSpan, "packed pages"),
        spans_(memory_.size() / kSpan, "packed pages") {
    partial_.fill(kNone);
  }

  std::byte* at(std::uint32_t block) { return memory_.data() + std::size_t{block} * kStep; }
  std::size_t used_bytes() const { return used_spans_ * kSpan; }
  std::size_t size() const { return memory_.size(); }

  /// Returns a block of at least so many bytes, or kNone.
  std::uint32_t take(std::size_t bytes) {
    const std::size_t steps = (bytes + kStep - 1) / kStep;
    std::uint32_t& first = partial_[steps - 1];
    if (first == kNone && !open_span(steps)) return kNone;
    const std::uint32_t number = first;
    Span& span = spans_[number];
    std::size_t word = 0;
    while (~span.taken[word] == 0) ++word;
    const auto bit = static_cast<std::size_t>(std::countr_one(span.taken[word]));
    span.taken[word] |= std::uint64_t{1} << bit;
    if (++span.count == blocks_of(steps)) unlink(number);
    return static_cast<std::uint32_t>(number * (kSpan / kStep) + (word * 64 + bit) * steps);
  }

  void give_back(std::uint32_t block) {
    const auto number = static_cast<std::uint32_t>(block / (kSpan / kStep));
    Span& span = spans_[number];
    const std::size_t steps = span.steps, i = block % (kSpan / kStep) / steps;
    span.taken[i / 64] &= ~(std::uint64_t{1} << i % 64);
    if (span.count-- == blocks_of(steps)) link(number);
    if (span.count > 0) return;
    unlink(number);
    close_span(number);
  }

 private:
  /// A span is in the list of its size while it has free blocks.
  struct Span {
    std::array<std::uint64_t, kWords> taken{};
    std::uint32_t previous = 0, next = 0;
    std::uint16_t count = 0, steps = 0;
  };
  static constexpr std::size_t blocks_of(std::size_t steps) { return kSpan / kStep / steps; }

  void link(std::uint32_t number) {
    Span& span = spans_[number];
    std::uint32_t& first = partial_[span.steps - 1U];
    span.previous = kNone;
    span.next = first;
    if (first != kNone) spans_[first].previous = number;
    first = number;
  }
  void unlink(std::uint32_t number) {
    Span& span = spans_[number];
    (span.previous == kNone ? partial_[span.steps - 1U] : spans_[span.previous].next) = span.next;
    if (span.next != kNone) spans_[span.next].previous = span.previous;
  }
  bool open_span(std::size_t steps) {
    std::uint32_t number = free_;
    if (number != kNone)
      free_ = spans_[number].next;
    else if (fresh_ < spans_.size())
      number = fresh_++;
    else
      return false;
    ++used_spans_;
    spans_[number] = Span{};
    spans_[number].steps = static_cast<std::uint16_t>(steps);
    // What lies behind the last block counts as taken.
    for (std::size_t i = blocks_of(steps); i < kWords * 64; ++i)
      spans_[number].taken[i / 64] |= std::uint64_t{1} << i % 64;
    link(number);
    return true;
  }
  /// Its memory is the program's again.
  void close_span(std::uint32_t number) {
    madvise(memory_.data() + number * kSpan, kSpan, MADV_DONTNEED);
    spans_[number].next = free_;
    free_ = number;
    --used_spans_;
  }

  Reserved<std::byte> memory_;
  Reserved<Span> spans_;
  std::array<std::uint32_t, kSizes> partial_{};
  std::uint32_t free_ = kNone, fresh_ = 0;
  std::size_t used_spans_ = 0;
};

class CompressedStore final : public Store {
 public:
  explicit CompressedStore(Bytes room)
      : slots_(slots_in(room * kMostGain)),
        pages_(std::size_t{slots_} * kPagesOfPart, "packed pages"),
        blocks_(room),
        scratch_(LZ4_COMPRESSBOUND(kPage) + static_cast<std::size_t>(LZ4_sizeofState()), "a page to pack") {}

  const std::string& name() const noexcept override { return name_; }
  const std::string& path() const noexcept override { return path_; }
  std::uint32_t slots() const noexcept override { return slots_; }
  bool is_memory() const noexcept override { return true; }

  int read(std::uint64_t offset, std::byte* to, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    for (std::size_t page = offset / kPage; bytes > 0; ++page, to += kPage, bytes -= kPage) {
      if (!unpack(pages_[page], to)) return EIO;
    }
    return 0;
  }

  int write(std::uint64_t offset, std::span<const iovec> from) noexcept override {
    std::size_t page = offset / kPage;
    for (const iovec& piece : from) {
      const auto* data = static_cast<const std::byte*>(piece.iov_base);
      for (std::size_t at = 0; at < piece.iov_len; at += kPage, ++page) {
        if (!pack(pages_[page], data + at)) return ENOSPC;
      }
    }
    return 0;
  }

  void forget(std::uint64_t offset, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    for (std::size_t page = offset / kPage; page < (offset + bytes) / kPage; ++page) drop(pages_[page]);
  }

  bool nearly_full() const noexcept override {
    const std::lock_guard lock(mutex_);
    return is_nearly_full();
  }
  bool declines() noexcept override {
    const std::lock_guard lock(mutex_);
    return is_nearly_full() || (average_ > kWorth && ++asked_ % kProbeEvery != 0);
  }
  void set_room(std::uint64_t bytes) noexcept override { room_ = bytes; }
  std::uint64_t memory_in_use() const noexcept override {
    const std::lock_guard lock(mutex_);
    return blocks_.used_bytes();
  }
  void go_on_in_child() noexcept override {
    new (&mutex_) std::mutex;
    new (&packing_) std::mutex;
  }

 private:
  static constexpr std::uint64_t kMostGain = 6;  // parts are given out for so many times the room
  // A fault that unpacks takes a quarter of one that reads a disk, and memory for packed pages is taken from
  // others: pages must become much smaller for it to pay.
  static constexpr unsigned kWorth = kPage / 3;
  static constexpr unsigned kProbeEvery = 64;

  /// A packed page. Of one that is a word over and over `word` is that; `bytes` is then 1.
  struct Page {
    std::uint64_t word = 0;
    std::uint32_t block = 0;
    std::uint16_t bytes = 0;  // 0: nothing is there
  };

  bool is_nearly_full() const {
    const std::uint64_t room = std::min<std::uint64_t>(room_, blocks_.size());
    return blocks_.used_bytes() + room / 16 + kPart > room;
  }

  static bool is_one_word(const std::byte* data) {
    return std::memcmp(data, data + sizeof(std::uint64_t), kPage - sizeof(std::uint64_t)) == 0;
  }

  void drop(Page& page) {
    if (page.bytes > 1) blocks_.give_back(page.block);
    page.bytes = 0;
  }

  bool pack(Page& page, const std::byte* data) {
    const std::lock_guard packing(packing_);
    const bool word = is_one_word(data);
    std::byte* const packed = scratch_.data() + LZ4_sizeofState();
    const int done = word ? 1
                          : LZ4_compress_fast_extState(scratch_.data(), reinterpret_cast<const char*>(data),
                                                       reinterpret_cast<char*>(packed), kPage,
                                                       static_cast<int>(kPage - kStep), 1);
    // What does not become smaller is kept as it is.
    const std::size_t bytes = done > 0 ? static_cast<std::size_t>(done) : kPage;
    const std::lock_guard lock(mutex_);
    average_ += (static_cast<double>(bytes) - average_) / 256;
    Page packed_page;
    packed_page.bytes = static_cast<std::uint16_t>(bytes);
    if (word) {
      std::memcpy(&packed_page.word, data, sizeof packed_page.word);
    } else {
      packed_page.block = blocks_.take(bytes);
      if (packed_page.block == kNone) return false;
      std::memcpy(blocks_.at(packed_page.block), done > 0 ? packed : data, bytes);
    }
    Page before = std::exchange(page, packed_page);
    drop(before);
    return true;
  }

  bool unpack(const Page& page, std::byte* to) {
    if (page.bytes <= 1) {
      const std::uint64_t word = page.bytes == 1 ? page.word : 0;
      for (std::size_t i = 0; i < kPage; i += sizeof word) std::memcpy(to + i, &word, sizeof word);
      return true;
    }
    const std::byte* const from = blocks_.at(page.block);
    if (page.bytes == kPage) {
      std::memcpy(to, from, kPage);
      return true;
    }
    return LZ4_decompress_safe(reinterpret_cast<const char*>(from), reinterpret_cast<char*>(to), page.bytes,
                               kPage) == static_cast<int>(kPage);
  }

  const std::string name_ = "compressed memory", path_;
  std::uint32_t slots_;
  Reserved<Page> pages_;
  mutable std::mutex mutex_;  // guards pages_, blocks_ and what follows
  Blocks blocks_;
  std::atomic<std::uint64_t> room_{~std::uint64_t{0}};  // where it is less than there are addresses for
  double average_ = kWorth;                             // of packed pages, lately
  unsigned asked_ = 0;
  std::mutex packing_;  // guards scratch_; taken before mutex_
  Reserved<std::byte> scratch_;
};

}  // namespace

bool can_compress() { return true; }
std::unique_ptr<Store> compressed_store(Bytes room) { return std::make_unique<CompressedStore>(room); }

#else

bool can_compress() { return false; }
std::unique_ptr<Store> compressed_store(Bytes) { return nullptr; }

#endif

}  // namespace terrace::pages
