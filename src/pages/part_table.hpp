// SPDX-License-Identifier: Apache-2.0
// The part table says of every part of a program's memory where its pages are.
//
// A part that is not in the table, or whose record is empty, has never been touched: it reads as zeros. Parts
// are numbered, and the numbers link resident parts into lists (part_list.hpp) without any further memory.
// A record takes 24 bytes for 64 KiB, which is 550 MB for 1.5 TB of memory (HM-Keeper: at most 600 MB, 002
// section 8.4.3). One lock guards the table and all that hangs on it.
#pragma once

#include <cstdint>

#include "pages/geometry.hpp"
#include "pages/heat.hpp"
#include "pages/reserved.hpp"
#include "pages/slots.hpp"

namespace terrace::pages {

using PartId = std::uint32_t;
inline constexpr PartId kNoPart = 0;  // number 0 is never given to a part

enum class PartState : std::uint8_t {
  idle,      ///< `present` pages are in the program, other `stored` ones in the slot, the rest are zeros
  fetching,  ///< as idle, and a thread reads some of `stored` from the slot
  lifted,    ///< as idle, and others wait in a frame: a touch brings them back, else they are written
  writing,   ///< as lifted, and the frame is being written
};

struct Part {
  PageMask present = 0;
  PageMask stored = 0;      ///< pages that the slot holds; current where they are not dirty
  PageMask dirty = 0;       ///< present pages that may differ from the slot's
  std::uint16_t frame = 0;  ///< lifted and writing: its place in staging
  Slot slot = kNoSlot;
  PartId previous = kNoPart, next = kNoPart;  ///< neighbours in a PartList
  PartState state : 2 = PartState::idle;
  bool listed : 1 = false;    ///< it is in a list
  std::uint8_t list : 3 = 0;  ///< which of the policy's lists it is in
  Heat heat;                  ///< for policies that ask

  bool empty() const { return present == 0 && stored == 0 && state == PartState::idle; }
};
static_assert(sizeof(Part) <= 24, "HM-Keeper's bound on metadata is part of the promise");

class PartTable {
 public:
  /// `most` bounds the memory that may ever be managed; the table itself grows as parts are touched.
  explicit PartTable(std::size_t most_bytes);

  /// Returns the number of the part at this address, or kNoPart.
  PartId find(Address address) const;
  /// Returns the same and makes a record where there is none; kNoPart where the table is full.
  PartId find_or_make(Address address);
  Part& operator[](PartId id) { return chunks_[id / kPartsOfChunk].parts[id % kPartsOfChunk]; }
  const Part& operator[](PartId id) const { return chunks_[id / kPartsOfChunk].parts[id % kPartsOfChunk]; }
  Address address(PartId id) const { return chunks_[id / kPartsOfChunk].start + id % kPartsOfChunk * kPart; }
  /// Returns the part behind this one in the order of the records, the first one behind the last; kNoPart
  /// where there are none.
  PartId after(PartId id) const;
  /// Forgets the chunk at this address if all its parts are empty.
  void forget_empty(Address address);
  /// Returns how many chunks have records.
  std::size_t chunks() const { return used_ - free_count_; }

  /// Calls `visit(id)` for each part with a record that touches [start, end).
  template <class Visit>
  void each_part(Address start, Address end, Visit visit) {
    for (Address chunk = chunk_start(start); chunk < end; chunk += kChunk) {
      const PartId first = find(chunk);
      if (first == kNoPart) continue;
      for (PartId id = first; id < first + kPartsOfChunk; ++id) {
        if (address(id) + kPart > start && address(id) < end) visit(id);
      }
    }
  }
  /// Calls `visit(address)` for every chunk with a record, in no order.
  template <class Visit>
  void each_chunk(Visit visit) const {
    for (std::size_t chunk = 1; chunk <= used_; ++chunk) {
      if (chunks_[chunk].start != 0) visit(chunks_[chunk].start);
    }
  }
  /// Calls `visit(id)` for every part with a record.
  template <class Visit>
  void each_part(Visit visit) {
    for (std::size_t chunk = 1; chunk <= used_; ++chunk) {
      if (chunks_[chunk].start == 0) continue;
      for (std::size_t i = 0; i < kPartsOfChunk; ++i) visit(static_cast<PartId>(chunk * kPartsOfChunk + i));
    }
  }

 private:
  struct Chunk {
    Address start = 0;  ///< 0: the record is free, and next_free links it
    std::uint32_t next_free = 0;
    Part parts[kPartsOfChunk];
  };
  std::uint32_t* entry(Address address);

  // Two levels lead from an address to a chunk's record: a table of 1 GiB pieces, and one of their chunks.
  Reserved<std::uint32_t> pieces_;
  Reserved<std::uint32_t> entries_;
  Reserved<Chunk> chunks_;
  std::size_t used_pieces_ = 0, used_ = 0, free_count_ = 0;
  std::uint32_t first_free_ = 0;
};

}  // namespace terrace::pages
