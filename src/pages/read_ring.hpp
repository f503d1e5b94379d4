// SPDX-License-Identifier: Apache-2.0
// A ReadRing reads from open files without a thread that waits for each read: io_uring(7), by its system
// calls alone, because the library that `terrace run` loads shares nothing with the program.
//
// One thread at a time uses it. Its memory is shared with the kernel, so a forked child must open another
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace terrace::pages {

class ReadRing {
 public:
  static constexpr unsigned kDepth = 256;  ///< reads under way at most

  /// Returns nothing where the kernel has no io_uring or forbids it.
  static std::unique_ptr<ReadRing> open();
  ReadRing(const ReadRing&) = delete;
  ~ReadRing();

  /// Prepares a read. pre: fewer than kDepth are prepared or under way
  void add(int file, std::uint64_t offset, std::byte* to, std::size_t bytes, std::uint64_t tag);
  /// Starts what was prepared. Returns false where the kernel refuses for now: call it again.
  bool start();

  struct Done {
    std::uint64_t tag = 0;
    std::int32_t result = 0;  ///< the number of bytes, or an errno less than 0
  };
  /// Returns whether a read has ended. Any thread may ask.
  bool has_news() const;
  /// pre: has_news()
  Done take();

  /// Readable when a read has ended.
  int descriptor() const { return descriptor_; }

 private:
  ReadRing() = default;
  bool prepare();

  int descriptor_ = -1;
  std::byte* rings_ = nullptr;
  std::byte* entries_ = nullptr;
  std::size_t rings_bytes_ = 0, entries_bytes_ = 0;
  std::uint32_t *head_ = nullptr, *tail_ = nullptr, *numbers_ = nullptr, mask_ = 0;
  std::uint32_t *done_head_ = nullptr, *done_tail_ = nullptr, done_mask_ = 0;
  std::byte* done_ = nullptr;
  unsigned unstarted_ = 0;
};

}  // namespace terrace::pages
