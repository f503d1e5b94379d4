// HoleIndex keeps the holes in order of (size, offset), for best fit and for the largest hole.
//
// Holes of similar size share a bin; two levels of bitmaps find the next bin that is not empty. Within a bin
// the holes form a treap, threaded through the blocks themselves, whose priorities are a hash of the block's
// index: every operation is logarithmic in the holes of one bin, whatever the order of calls, and a bin
// mostly has one. docs/decisions/002-heap-index.md has the figures behind this choice.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "heap/block.hpp"

namespace terrace {

class HoleIndex {
 public:
  static constexpr unsigned kPerOctaveLog2 = 6;
  static constexpr unsigned kBins = 64u << kPerOctaveLog2;

  HoleIndex() { roots_.fill(kNoBlock); }

  void insert(Blocks& blocks, BlockIndex hole);
  /// pre: the hole's offset and size are those it was inserted with.
  void erase(Blocks& blocks, BlockIndex hole);
  /// Changes the hole's offset and size, which is cheap when it is alone in its bin and stays there.
  void change(Blocks& blocks, BlockIndex hole, std::uint64_t offset, std::uint64_t size);

  /// Returns the first hole that is not below (size, offset) in the order, or kNoBlock.
  BlockIndex first_from(const Blocks& blocks, std::uint64_t size, std::uint64_t offset) const;
  /// Returns the last hole in the order, or kNoBlock.
  BlockIndex largest(const Blocks& blocks) const;

  /// Returns the bin of a size; each power of two is divided into equally many bins. pre: size > 0
  static unsigned bin_of(std::uint64_t size) {
    const unsigned exponent = static_cast<unsigned>(std::bit_width(size)) - 1;
    const std::uint64_t leading = size << (63 - exponent) << 1 >> (64 - kPerOctaveLog2);
    return (exponent << kPerOctaveLog2) + static_cast<unsigned>(leading);
  }
  // The factor is odd, so all priorities are distinct.
  static std::uint32_t priority(BlockIndex hole) { return hole * 2654435769u; }
  BlockIndex root(unsigned bin) const { return roots_[bin]; }
  bool marked(unsigned bin) const { return (words_[bin / 64] >> (bin % 64) & 1) != 0; }

 private:
  void mark(unsigned bin);
  void unmark(unsigned bin);
  unsigned next_marked(unsigned bin) const;  // kBins when there is none

  std::array<BlockIndex, kBins> roots_;
  std::array<std::uint64_t, kBins / 64> words_{};  // a bit per bin that has holes
  std::uint64_t summary_ = 0;                      // a bit per word that is not zero
};

}  // namespace terrace
