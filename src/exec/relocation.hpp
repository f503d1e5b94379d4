// Relocation: carries what outlives steps from where the plan of one graph keeps it to where that of another
// does, in the same tiers. Layouts may differ, and so may the parts that a tensor is kept in; values are the
// same to the bit.
//
// Tensors go one by one, each as soon as nothing that is still needed lies where it goes. Where several lie
// crosswise, the smallest of them waits in memory; what is stored otherwise there, or comes from a disk, goes
// through it. That memory is the part of the fastest tier that neither plan uses between steps, and what does
// not fit there is taken beside the tiers, and counted. What fails leaves every value in its place or in
// memory. One thread at a time; graphs, stores and tiers outlive this.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exec/copy_memory.hpp"
#include "exec/store.hpp"
#include "graph/parts.hpp"

namespace terrace {

class Relocation {
 public:
  struct Side {
    const Graph& graph;
    const Store& store;
  };

  /// pre: both have the same persistent tensors by name, constants aside, whole or in parts
  Relocation(Side from, Side to, const OpenTiers& tiers);

  /// Throws EnvironmentError where a tier fails or memory is missing; called again it goes on from there.
  void run();
  /// Tensors that had to wait for others.
  std::size_t waited() const { return waited_; }
  /// The most bytes there ever were at once in memory beside the tiers.
  Bytes most_held() const { return memory_.most_held(); }

 private:
  struct Region {
    TensorId tensor;
    TierAddress address;
  };
  /// A tensor, or a part that both graphs have; where they have different parts, all of them.
  struct Item {
    std::vector<Region> sources;        // one for each part
    std::vector<TensorId> to;           // the parts it is to have, in the order of their rows
    bool same_bytes = false;            // it is stored alike in both graphs
    std::vector<Region> destinations;   // where it is not yet
    std::vector<std::uint32_t> blocks;  // items that go to where this one lies
    std::uint32_t blockers = 0;         // items that lie where this one goes
    bool taken = false;                 // it lies in `value` alone
    CopyMemory::Room value = {};        // as it is to be stored, one part behind the other
  };

  void add(const WholeTensor& from, const WholeTensor& to);
  void add(std::vector<TensorId> from, std::vector<TensorId> to);
  void find_blockers();
  /// What reading or writing a tensor there touches.
  Bytes touched(TierAddress address, Bytes bytes) const;
  Bytes size(const Item& item) const;
  /// Whether the one is to be written to where the other lies.
  bool goes_over(const Item& item, const Item& other) const;
  bool goes_to(const Item& item, TierAddress address, Bytes size) const;
  Bytes room_for(const Item& item) const;
  void read_rows(const Item& item, std::span<std::byte> rows) const;
  void cut(const Item& item);
  void take(Item& item);
  void hold_smallest();
  void release(Item& item);
  void put(Item& item);

  const Side from_, to_;
  const OpenTiers& tiers_;
  CopyMemory memory_;
  std::vector<Item> items_;  // what has to go somewhere
  std::vector<std::uint32_t> ready_;
  std::size_t left_ = 0, waited_ = 0;
};

}  // namespace terrace
