#include "heap/hole_index.hpp"

namespace terrace {
namespace {

bool before(const Block& a, const Block& b) {
  return a.size != b.size ? a.size < b.size : a.offset < b.offset;
}

}  // namespace

void HoleIndex::mark(unsigned bin) {
  words_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  summary_ |= std::uint64_t{1} << (bin / 64);
}

void HoleIndex::unmark(unsigned bin) {
  words_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  if (words_[bin / 64] == 0) summary_ &= ~(std::uint64_t{1} << (bin / 64));
}

unsigned HoleIndex::next_marked(unsigned bin) const {
  const unsigned word = bin / 64;
  const std::uint64_t here = words_[word] & (~std::uint64_t{1} << (bin % 64));
  if (here != 0) return word * 64 + static_cast<unsigned>(std::countr_zero(here));
  const std::uint64_t above = summary_ & (~std::uint64_t{1} << word);
  if (above == 0) return kBins;
  const unsigned found = static_cast<unsigned>(std::countr_zero(above));
  return found * 64 + static_cast<unsigned>(std::countr_zero(words_[found]));
}

void HoleIndex::insert(Blocks& blocks, BlockIndex hole) {
  Block& added = blocks[hole];
  const unsigned bin = bin_of(added.size);
  BlockIndex* link = &roots_[bin];
  if (*link == kNoBlock) mark(bin);
  while (*link != kNoBlock && priority(*link) > priority(hole)) {
    Block& node = blocks[*link];
    link = before(node, added) ? &node.right : &node.left;
  }
  // The new hole becomes the root of this subtree, which is split into the holes before it and after it.
  BlockIndex rest = *link;
  *link = hole;
  BlockIndex* lower = &added.left;
  BlockIndex* upper = &added.right;
  while (rest != kNoBlock) {
    Block& node = blocks[rest];
    const bool low = before(node, added);
    (low ? *lower : *upper) = rest;
    (low ? lower : upper) = low ? &node.right : &node.left;
    rest = low ? *lower : *upper;
  }
  *lower = *upper = kNoBlock;
}

void HoleIndex::erase(Blocks& blocks, BlockIndex hole) {
  const Block& removed = blocks[hole];
  const unsigned bin = bin_of(removed.size);
  BlockIndex* link = &roots_[bin];
  while (*link != hole) {
    Block& node = blocks[*link];
    link = before(node, removed) ? &node.right : &node.left;
  }
  BlockIndex lower = removed.left, upper = removed.right;
  while (lower != kNoBlock && upper != kNoBlock) {
    const bool low = priority(lower) > priority(upper);
    BlockIndex& taken = low ? lower : upper;
    *link = taken;
    link = low ? &blocks[taken].right : &blocks[taken].left;
    taken = *link;
  }
  *link = lower != kNoBlock ? lower : upper;
  if (roots_[bin] == kNoBlock) unmark(bin);
}

void HoleIndex::change(Blocks& blocks, BlockIndex hole, std::uint64_t offset, std::uint64_t size) {
  Block& block = blocks[hole];
  const unsigned bin = bin_of(block.size);
  const bool alone = roots_[bin] == hole && block.left == kNoBlock && block.right == kNoBlock;
  const bool stays = alone && bin_of(size) == bin;
  if (!stays) erase(blocks, hole);
  block.offset = offset;
  block.size = size;
  if (!stays) insert(blocks, hole);
}

BlockIndex HoleIndex::first_from(const Blocks& blocks, std::uint64_t size, std::uint64_t offset) const {
  const unsigned bin = bin_of(size);
  BlockIndex found = kNoBlock;
  for (BlockIndex at = roots_[bin]; at != kNoBlock;) {
    const Block& node = blocks[at];
    const bool below = node.size != size ? node.size < size : node.offset < offset;
    if (!below) found = at;
    at = below ? node.right : node.left;
  }
  if (found != kNoBlock) return found;
  const unsigned next = next_marked(bin);
  if (next == kBins) return kNoBlock;
  found = roots_[next];
  while (blocks[found].left != kNoBlock) found = blocks[found].left;
  return found;
}

BlockIndex HoleIndex::largest(const Blocks& blocks) const {
  if (summary_ == 0) return kNoBlock;
  const unsigned word = static_cast<unsigned>(std::bit_width(summary_)) - 1;
  BlockIndex found = roots_[word * 64 + static_cast<unsigned>(std::bit_width(words_[word])) - 1];
  while (blocks[found].right != kNoBlock) found = blocks[found].right;
  return found;
}

}  // namespace terrace
