// BlockTable::validate checks every invariant by recounting from the list of blocks, independently of the
// code that maintains it.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "heap/block_table.hpp"

namespace terrace {
namespace {

Error broken(const char* invariant, std::uint64_t offset) {
  return {ErrorCode::inconsistent,
          fmt::format("the heap is damaged at offset {}: {}; this is a bug, please report it", offset,
                      invariant)};
}

// The counters as recounted from the list.
struct Recount {
  std::uint64_t used = 0, blocks_used = 0, holes = 0;
  std::uint64_t highest = 0;  // the end of the highest block in use
  std::uint64_t largest = 0;  // the size of the largest hole
  std::vector<bool> listed;   // whether a block, by index, is in the list
  std::vector<bool> hole;     // whether it also is a hole
};

Result<void> check_block(const BlockTable& table, const Block& block) {
  const auto fail = [&](const char* invariant) { return broken(invariant, block.offset); };
  if (block.size == 0) return fail("a block is empty");
  if (block.size % table.granularity != 0) return fail("a block's size is not a multiple of the granularity");
  if (block.size > table.capacity - block.offset) return fail("a block reaches beyond the capacity");
  if (!block.used()) return {};
  if (block.allocation > table.allocations) return fail("a block has the number of a later allocation");
  if (block.alignment_log2 >= 63 || block.offset % (std::uint64_t{1} << block.alignment_log2) != 0)
    return fail("a block has lost its alignment");
  return {};
}

void count(Recount& recount, const Block& block, BlockIndex at) {
  recount.listed[at] = true;
  recount.hole[at] = !block.used();
  if (block.used()) {
    recount.used += block.size;
    recount.highest = block.end();
    ++recount.blocks_used;
  } else {
    recount.largest = std::max(recount.largest, block.size);
    ++recount.holes;
  }
}

// Checks that the list tiles [0, capacity).
Result<Recount> recount_list(const BlockTable& table) {
  Recount recount;
  recount.listed.resize(table.blocks.size());
  recount.hole.resize(table.blocks.size());
  std::uint64_t offset = 0;
  BlockIndex prev = kNoBlock;
  for (BlockIndex at = table.head; at != kNoBlock; at = table.blocks[at].next) {
    const auto fail = [&](const char* invariant) { return broken(invariant, offset); };
    if (at >= table.blocks.size()) return fail("a link leads out of the table");
    if (recount.listed[at]) return fail("the list of blocks runs in a circle");
    const Block& block = table.blocks[at];
    if (block.prev != prev) return fail("two neighbours disagree");
    if (block.offset != offset) return fail("two blocks overlap or leave bytes between them");
    if (auto sound = check_block(table, block); !sound) return sound.error();
    if (prev != kNoBlock && !block.used() && !table.blocks[prev].used())
      return fail("two holes are neighbours");
    count(recount, block, at);
    offset = block.end();
    prev = at;
  }
  if (offset != table.capacity) return broken("the blocks end before the capacity", offset);
  return recount;
}

Result<void> check_counters(const BlockTable& table, const Recount& recount) {
  const auto fail = [](const char* invariant) { return broken(invariant, 0); };
  if (recount.used != table.used) return fail("the bytes in use are miscounted");
  if (recount.blocks_used != table.blocks_used) return fail("the blocks in use are miscounted");
  if (recount.holes != table.hole_count) return fail("the holes are miscounted");
  if (recount.largest != table.largest_hole()) return fail("the largest hole is not the largest");
  if (table.peak < table.used || table.peak > table.capacity) return fail("the peak is below what is used");
  if (table.footprint < recount.highest || table.footprint < table.peak || table.footprint > table.capacity)
    return fail("the footprint is below the highest block");
  return {};
}

// Checks that every block of the table is either in the list or spare.
Result<void> check_spares(const BlockTable& table, std::vector<bool> known) {
  for (BlockIndex at = table.spare; at != kNoBlock; at = table.blocks[at].next) {
    if (at >= known.size() || known[at]) return broken("the list of spares is tangled", 0);
    if (table.blocks[at].used()) return broken("a spare is in use", table.blocks[at].offset);
    known[at] = true;
  }
  if (std::find(known.begin(), known.end(), false) != known.end()) return broken("a block is lost", 0);
  return {};
}

// Checks that every hole of the list is in the index once, in its bin and in order.
class IndexCheck {
 public:
  IndexCheck(const BlockTable& table, const Recount& recount) : table_(table), awaited_(recount.hole) {}

  Result<void> run() {
    for (unsigned bin = 0; bin < HoleIndex::kBins; ++bin) {
      const BlockIndex root = table_.holes.root(bin);
      if (table_.holes.marked(bin) != (root != kNoBlock)) return broken("a bin's mark is wrong", 0);
      if (root == kNoBlock) continue;
      if (auto sound = check_bin(bin, root); !sound) return sound;
    }
    if (std::find(awaited_.begin(), awaited_.end(), true) != awaited_.end())
      return broken("a hole is missing from the index", 0);
    return {};
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  struct Visit {
    BlockIndex at;
    Key low, high;  // the nodes above allow only keys between these
  };

  // There is no recursion, because the depth is bounded only while the index is sound.
  Result<void> check_bin(unsigned bin, BlockIndex root) {
    std::vector<Visit> open{{root, {0, 0}, {~std::uint64_t{0}, 0}}};
    while (!open.empty()) {
      const Visit visit = open.back();
      open.pop_back();
      if (visit.at == kNoBlock) continue;
      if (auto sound = check_hole(visit, bin); !sound) return sound;
      const Block& hole = table_.blocks[visit.at];
      const Key key(hole.size, hole.offset);
      open.push_back({hole.left, visit.low, key});
      open.push_back({hole.right, key, visit.high});
    }
    return {};
  }

  Result<void> check_hole(const Visit& visit, unsigned bin) {
    if (visit.at >= awaited_.size() || !awaited_[visit.at])
      return broken("the index names what is no hole, or names it twice", 0);
    awaited_[visit.at] = false;
    const Block& hole = table_.blocks[visit.at];
    const Key key(hole.size, hole.offset);
    if (HoleIndex::bin_of(hole.size) != bin) return broken("a hole stands in a wrong bin", hole.offset);
    if (key <= visit.low || key >= visit.high) return broken("the index is out of order", hole.offset);
    for (const BlockIndex child : {hole.left, hole.right}) {
      if (child != kNoBlock && HoleIndex::priority(child) > HoleIndex::priority(visit.at))
        return broken("the index is out of balance", hole.offset);
    }
    return {};
  }

  const BlockTable& table_;
  std::vector<bool> awaited_;  // holes of the list not yet met in the index
};

}  // namespace

Result<void> BlockTable::validate() const {
  const auto recount = recount_list(*this);
  if (!recount) return recount.error();
  // The counters come after the index, because they ask it for the largest hole.
  if (auto sound = IndexCheck(*this, *recount).run(); !sound) return sound;
  if (auto sound = check_spares(*this, recount->listed); !sound) return sound;
  return check_counters(*this, *recount);
}

void BlockTable::check_around(BlockIndex changed) {
  const Block& block = blocks[changed];
  const auto check_neighbours = [](const Block& below, const Block& above) {
    check(below.end() == above.offset, "heap: a block begins where the one below it ends");
    check(below.used() || above.used(), "heap: no two holes are neighbours");
  };
  if (block.prev != kNoBlock) check_neighbours(blocks[block.prev], block);
  if (block.next != kNoBlock) check_neighbours(block, blocks[block.next]);
  check(block.used() || holes.first_from(blocks, block.size, block.offset) == changed,
        "heap: a hole stands in the index");
  if (++changes < std::max<std::uint64_t>(64, blocks.size())) return;
  changes = 0;
  const auto sound = validate();
  check(sound.ok(), sound ? "" : sound.error().message.c_str());
}

}  // namespace terrace
