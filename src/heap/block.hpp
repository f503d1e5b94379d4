// A Block is one contiguous range of the tier, in use or a hole. The heap's whole state is a vector of these,
// kept outside the tier's own bytes. Blocks are named by their index in that vector.
#pragma once

#include <cstdint>
#include <vector>

namespace terrace {

using BlockIndex = std::uint32_t;
constexpr BlockIndex kNoBlock = ~BlockIndex{0};

struct Block {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t owner = 0;
  std::uint64_t allocation = 0;  ///< the number of the allocation that made it; 0 for a hole or a spare block
  BlockIndex prev = kNoBlock,
             next = kNoBlock;  ///< neighbours in address order; `next` also links the spare blocks
  BlockIndex left = kNoBlock, right = kNoBlock;  ///< children of a hole in the index of holes
  std::uint8_t alignment_log2 = 0;               ///< as given at allocation

  bool used() const { return allocation != 0; }
  std::uint64_t end() const { return offset + size; }
};

using Blocks = std::vector<Block>;

}  // namespace terrace
