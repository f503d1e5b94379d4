// SPDX-License-Identifier: Apache-2.0
// What an index owns: its fast part, the bytes of its slow part or the way to them, and its searchers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "ann/disk_file.hpp"
#include "ann/huge_memory.hpp"
#include "ann/searcher.hpp"
#include "terrace/ann.hpp"

namespace terrace::ann {

/// For a disk, where the user names no other.
inline constexpr Bytes kDefaultCache{32U << 20};

struct Index::Impl {
  Metric metric = Metric::l2;
  BuildOptions options;  ///< with which an empty index is built when vectors come
  unsigned searchers_most = 1, threads = 1;
  Bytes cache{0};
  FastPart fast;
  SlowLayout layout{{}, 0, false};
  HugeVector<std::byte> memory;  ///< the slow part, where no tier holds it
  Tier* tier = nullptr;          ///< that holds it
  std::atomic<std::uint64_t> queries{0};
  std::shared_mutex changing;  ///< held alone while vectors are added, shared while the index is used

  /// Gives a searcher back when it goes.
  struct GiveBack {
    Impl* impl;
    void operator()(Searcher* searcher) const;
  };
  using Borrowed = std::unique_ptr<Searcher, GiveBack>;
  /// A searcher that nobody uses; waits for one where all are in use.
  Borrowed borrow();
  SearchStatistics statistics();
  /// Lets all searchers go; new ones see the index as it is then. pre: none is borrowed
  void drop_searchers();
  /// Threads that may search at once, each with data of its own.
  unsigned walks() const { return searchers_most * threads; }

  /// Takes memory for a tight layout, or fails where the tier is too small or is none.
  Result<void> reserve();
  /// pre: the layout is tight
  std::byte* slow_memory() { return tier != nullptr ? tier->memory() : memory.data(); }
  /// The slow part stays in that file. Throws EnvironmentError where it cannot be opened.
  void open_disk(const std::filesystem::path& path);

  /// Adds vectors to an index that has some.
  Result<void> add(Vectors vectors, std::uint32_t ef_construction);

  /// Puts the slow part where it belongs, on a disk with those elements. Sets layout, memory and tier.
  Result<void> place(const Graph& graph, const Rows& rows, ElementType element, Tier* slow);

 private:
  /// Gives the lowest layer so many nodes, whose records are where they were.
  Result<void> resize(std::uint64_t nodes);
  void add_twin(Searcher& searcher, std::uint32_t node, std::uint32_t other);
  std::unique_ptr<SlowPart> open_slow_part();
  std::unique_ptr<Searcher> open_searcher();
  Result<void> place_on_disk(const Graph& graph, const Rows& rows, Tier& slow);

  std::unique_ptr<DiskFile> disk_;                   ///< where the slow part stayed in its file
  std::vector<std::unique_ptr<BlockQueue>> queues_;  ///< one for each walk
  std::mutex mutex_;                                 // guards all below and the queues
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Searcher>> all_;
  std::vector<Searcher*> free_;
  SearchStatistics past_;  // of searchers that were let go
};

}  // namespace terrace::ann
