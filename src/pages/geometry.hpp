// SPDX-License-Identifier: Apache-2.0
// The units in which a program's memory is managed.
//
//   page    4 KiB, as the processor sees it
//   part    64 KiB: what one fault fetches and what an eviction takes away
//   chunk   2 MiB: 32 parts that share one record
//   slot    64 KiB of a slower tier that can hold one part
//   frame   64 KiB of staging memory that holds a part on its way out
//
// A PageMask has one bit for each page of a part.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace terrace::pages {

using Address = std::uintptr_t;
using PageMask = std::uint16_t;

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kPagesOfPart = 16;
inline constexpr std::size_t kPart = kPage * kPagesOfPart;
inline constexpr std::size_t kPartsOfChunk = 32;
inline constexpr std::size_t kChunk = kPart * kPartsOfChunk;
inline constexpr PageMask kAllPages = 0xFFFF;

/// Addresses [start, end).
struct Range {
  Address start = 0, end = 0;
  bool operator==(const Range&) const = default;
  bool touches(const Range& other) const { return start < other.end && other.start < end; }
};

constexpr Address part_start(Address address) { return address & ~Address{kPart - 1}; }
constexpr Address chunk_start(Address address) { return address & ~Address{kChunk - 1}; }
constexpr PageMask page_bit(Address address) {
  return static_cast<PageMask>(1U << (address / kPage % kPagesOfPart));
}

constexpr unsigned count_of(PageMask pages) { return static_cast<unsigned>(std::popcount(pages)); }
constexpr PageMask without(PageMask pages, PageMask others) { return static_cast<PageMask>(pages & ~others); }

// What is learned about memory is learned by areas of 64 MiB. Few of them are in use at once, so that many
// areas share a number and hardly ever disturb each other.
inline constexpr std::size_t kAreas = 64;
constexpr std::size_t area_number(Address address) {
  return std::uint64_t{address >> 26} * 0x9E3779B97F4A7C15 >> 58;
}

/// All pages from the first one to the last.
constexpr PageMask span_of(PageMask pages) {
  if (pages == 0) return 0;
  const unsigned up_to_last = std::bit_floor(static_cast<unsigned>(pages)) * 2 - 1;
  const unsigned before_first = (1U << std::countr_zero(pages)) - 1;
  return static_cast<PageMask>(up_to_last & ~before_first);
}

/// The pages of the part at `part` that lie in [start, end).
constexpr PageMask pages_within(Address part, Address start, Address end) {
  PageMask mask = 0;
  for (std::size_t i = 0; i < kPagesOfPart; ++i) {
    const Address page = part + i * kPage;
    if (page >= start && page < end) mask = static_cast<PageMask>(mask | 1U << i);
  }
  return mask;
}

/// Calls `visit(first, count)` for each run of set bits, until it returns false.
template <class Visit>
void each_run(PageMask mask, Visit visit) {
  for (std::size_t i = 0; i < kPagesOfPart;) {
    if (!(mask >> i & 1)) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < kPagesOfPart && (mask >> end & 1)) ++end;
    if (!visit(i, end - i)) return;
    i = end;
  }
}

}  // namespace terrace::pages
