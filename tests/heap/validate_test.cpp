// validate() must find damage: each case breaks one thing in a sound table.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "heap/block_table.hpp"

namespace terrace {
namespace {

// Six blocks, of which the second, fourth and sixth are holes of one size, the fourth the root of their bin.
BlockTable sound_table() {
  BlockTable table(1 << 20, 64);
  BlockIndex blocks[7];
  for (BlockIndex& block : blocks) block = table.take(table.find(4096, 64), 4096, 64, 0);
  for (const int i : {1, 3, 5}) table.release(blocks[i]);
  return table;
}

BlockIndex nth(const BlockTable& table, int n) {
  BlockIndex block = table.head;
  while (n-- > 0) block = table.blocks[block].next;
  return block;
}

struct Damage {
  const char* found;  ///< what validate() says
  std::function<void(BlockTable&)> make;
};

TEST(Validate, AcceptsASoundTable) { EXPECT_TRUE(sound_table().validate()); }

TEST(Validate, FindsEveryKindOfDamage) {
  const auto edit = [](int n, auto change) {
    return [n, change](BlockTable& table) { change(table.blocks[nth(table, n)]); };
  };
  const Damage damages[] = {
      {"overlap or leave bytes", edit(2, [](Block& block) { block.offset += 64; })},
      {"overlap or leave bytes", edit(2, [](Block& block) { block.size -= 64; })},
      {"is empty", edit(6, [](Block& block) { block.size = 0; })},
      {"multiple of the granularity", edit(2, [](Block& block) { block.size += 1; })},
      {"beyond the capacity", edit(7, [](Block& block) { block.size += 64; })},
      {"end before the capacity", edit(7, [](Block& block) { block.size -= 64; })},
      {"the number of a later allocation", edit(2, [](Block& block) { block.allocation = 1000; })},
      {"lost its alignment", edit(2, [](Block& block) { block.alignment_log2 = 20; })},
      {"neighbours disagree", edit(2, [](Block& block) { block.prev = kNoBlock; })},
      {"leads out of the table", edit(2, [](Block& block) { block.next = 10000; })},
      {"in a circle", [](BlockTable& table) { table.blocks[nth(table, 2)].next = table.head; }},
      {"two holes are neighbours", edit(2, [](Block& block) { block.allocation = 0; })},
      {"the index names what is no hole", edit(1, [](Block& block) { block.allocation = 1; })},
      {"missing from the index", [](BlockTable& table) { table.holes.erase(table.blocks, nth(table, 1)); }},
      {"no hole, or names it twice",
       [](BlockTable& table) {
         const BlockIndex root = table.holes.root(HoleIndex::bin_of(4096));
         table.blocks[root].left = table.blocks[root].right = root;
       }},
      {"out of order",
       [](BlockTable& table) {
         Block& root = table.blocks[table.holes.root(HoleIndex::bin_of(4096))];
         std::swap(root.left, root.right);
       }},
      {"bytes in use are miscounted", [](BlockTable& table) { table.used += 64; }},
      {"blocks in use are miscounted", [](BlockTable& table) { ++table.blocks_used; }},
      {"holes are miscounted", [](BlockTable& table) { --table.hole_count; }},
      {"peak is below", [](BlockTable& table) { table.peak = 64; }},
      {"footprint is below", [](BlockTable& table) { table.footprint = table.peak - 64; }},
      {"block is lost", [](BlockTable& table) { table.blocks.emplace_back(); }},
      {"spares is tangled", [](BlockTable& table) { table.spare = table.head; }},
  };
  for (const auto& [found, make] : damages) {
    BlockTable table = sound_table();
    make(table);
    const auto verdict = table.validate();
    ASSERT_FALSE(verdict) << found;
    EXPECT_NE(verdict.error().message.find(found), std::string::npos)
        << "expected: " << found << "\nsaid: " << verdict.error().message;
  }
}

#ifndef NDEBUG
TEST(Validate, RunsByItselfInDebugBuilds) {
  BlockTable table = sound_table();
  table.used += 64;  // no neighbour shows it
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) table.release(table.take(table.find(64, 64), 64, 64, 0));
      },
      std::logic_error);
}
#endif

}  // namespace
}  // namespace terrace
