// SPDX-License-Identifier: Apache-2.0
#include "pages/part_table.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace terrace::pages {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;
constexpr std::size_t kEntriesOfPiece = kPiece / kChunk;
constexpr std::size_t kAddressBits = 47;
// Mappings of a program are scattered: each may open a piece of which it needs little.
constexpr std::size_t kMostPieces = 8192;

}  // namespace

PartTable::PartTable(std::size_t most_bytes)
    : pieces_((std::size_t{1} << kAddressBits) / kPiece, "the table of a program's memory"),
      entries_((kMostPieces + 1) * kEntriesOfPiece, "the table of a program's memory"),
      chunks_(most_bytes / kChunk + 2, "the records of a program's memory") {}

std::uint32_t* PartTable::entry(Address address) {
  const std::size_t piece = address / kPiece;
  if (piece >= pieces_.size()) return nullptr;
  if (pieces_[piece] == 0) {
    if (used_pieces_ == kMostPieces) return nullptr;
    pieces_[piece] = static_cast<std::uint32_t>(++used_pieces_);
  }
  return &entries_[pieces_[piece] * kEntriesOfPiece + address % kPiece / kChunk];
}

PartId PartTable::find(Address address) const {
  const std::size_t piece = address / kPiece;
  if (piece >= pieces_.size() || pieces_[piece] == 0) return kNoPart;
  const std::uint32_t chunk = entries_[pieces_[piece] * kEntriesOfPiece + address % kPiece / kChunk];
  if (chunk == 0) return kNoPart;
  return static_cast<PartId>(chunk * kPartsOfChunk + address % kChunk / kPart);
}

PartId PartTable::after(PartId id) const {
  if (id != kNoPart && id % kPartsOfChunk + 1 < kPartsOfChunk && chunks_[id / kPartsOfChunk].start != 0)
    return id + 1;
  std::size_t chunk = id / kPartsOfChunk;
  for (std::size_t tries = 0; tries < used_; ++tries) {
    chunk = chunk >= used_ ? 1 : chunk + 1;
    if (chunks_[chunk].start != 0) return static_cast<PartId>(chunk * kPartsOfChunk);
  }
  return kNoPart;
}

PartId PartTable::find_or_make(Address address) {
  std::uint32_t* const place = entry(address);
  if (place == nullptr) return kNoPart;
  if (*place == 0) {
    std::uint32_t chunk = first_free_;
    if (chunk != 0) {
      first_free_ = chunks_[chunk].next_free;
      --free_count_;
    } else if (used_ + 1 < chunks_.size()) {
      chunk = static_cast<std::uint32_t>(++used_);
    } else {
      return kNoPart;
    }
    chunks_[chunk].start = chunk_start(address);
    for (Part& part : chunks_[chunk].parts) part = Part{};
    // A child that is forked by another thread right here finds the record whole or not at all.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    *place = chunk;
  }
  return static_cast<PartId>(*place * kPartsOfChunk + address % kChunk / kPart);
}

void PartTable::forget_empty(Address address) {
  std::uint32_t* const place = entry(address);
  if (place == nullptr || *place == 0) return;
  Chunk& chunk = chunks_[*place];
  const bool empty = std::all_of(std::begin(chunk.parts), std::end(chunk.parts), [](const Part& part) {
    return part.empty() && part.slot == kNoSlot && !part.listed;
  });
  if (!empty) return;
  const std::uint32_t number = std::exchange(*place, 0);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // as above
  chunk.start = 0;
  chunk.next_free = first_free_;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  first_free_ = number;
  ++free_count_;
}

}  // namespace terrace::pages
