// SPDX-License-Identifier: Apache-2.0
// The rival of vector search in memory: hnswlib, from Debian's package libhnswlib-dev.
#pragma once

#if !__has_include(<hnswlib/hnswlib.h>)
#error "bench_ann needs hnswlib: install libhnswlib-dev"
#endif

#include <hnswlib/hnswlib.h>

#include "terrace/ann.hpp"

namespace terrace::bench {

class Rival {
 public:
  Rival(const ann::Vectors& vectors, std::size_t links, std::size_t ef_construction)
      : space_(vectors.dimension), index_(&space_, vectors.count(), links, ef_construction) {
    for (std::size_t i = 0; i < vectors.count(); ++i) index_.addPoint(vectors[i].data(), i);
  }

  ann::Neighbours search(const ann::Vectors& queries, std::size_t k, std::size_t ef) {
    index_.setEf(ef);
    ann::Neighbours all(queries.count());
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto found = index_.searchKnn(queries[i].data(), k);
      all[i].resize(found.size());
      for (; !found.empty(); found.pop())
        all[i][found.size() - 1] = {static_cast<std::uint32_t>(found.top().second), found.top().first};
    }
    return all;
  }

 private:
  hnswlib::L2Space space_;
  hnswlib::HierarchicalNSW<float> index_;
};

}  // namespace terrace::bench
