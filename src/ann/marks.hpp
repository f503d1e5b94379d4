// SPDX-License-Identifier: Apache-2.0
// Marks: which vectors were removed. They stay in the graph and lead the way; answers leave them out.
// Thread-safe: a search sees a mark or not, as if it came before or after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "terrace/bytes.hpp"

namespace terrace::ann {

class Marks {
 public:
  explicit Marks(std::uint64_t vectors) : vectors_(vectors), words_(words_for(vectors)) {}
  /// The same marks, with room for more vectors. pre: vectors >= those of `other`
  Marks(const Marks& other, std::uint64_t vectors) : Marks(vectors) {
    for (const std::uint32_t id : other.all()) mark(id);
  }
  static Bytes size_for(std::uint64_t vectors) { return Bytes{words_for(vectors) * sizeof(std::uint64_t)}; }

  /// pre: id < vectors
  void mark(std::uint32_t id) {
    const std::uint64_t bit = std::uint64_t{1} << (id % 64);
    if ((words_[id / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0)
      count_.fetch_add(1, std::memory_order_relaxed);
  }
  bool marked(std::uint32_t id) const {
    return (words_[id / 64].load(std::memory_order_relaxed) >> (id % 64) & 1) != 0;
  }
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  /// Ascending.
  std::vector<std::uint32_t> all() const {
    std::vector<std::uint32_t> ids;
    for (std::uint64_t id = 0; id < vectors_; ++id) {
      if (marked(static_cast<std::uint32_t>(id))) ids.push_back(static_cast<std::uint32_t>(id));
    }
    return ids;
  }

 private:
  static std::uint64_t words_for(std::uint64_t vectors) { return (vectors + 63) / 64; }

  std::uint64_t vectors_;
  std::vector<std::atomic<std::uint64_t>> words_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace terrace::ann
