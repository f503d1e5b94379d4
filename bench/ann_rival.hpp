// SPDX-License-Identifier: Apache-2.0
// The rival of vector search: hnswlib, from Debian's package libhnswlib-dev. In memory as it is; and from a
// file that is read or mapped, where its lowest layer does not fit.
#pragma once

#if !__has_include(<hnswlib/hnswlib.h>)
#error "bench_ann needs hnswlib: install libhnswlib-dev"
#endif

#include <fcntl.h>
#include <hnswlib/hnswlib.h>
#include <sys/mman.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "terrace/ann.hpp"

namespace terrace::bench {

class Rival {
 public:
  Rival(const ann::Vectors& vectors, std::size_t links, std::size_t ef_construction)
      : space_(vectors.dimension), index_(&space_, vectors.count(), links, ef_construction) {
    for (std::size_t i = 0; i < vectors.count(); ++i) index_.addPoint(vectors[i].data(), i);
  }

  enum class Lowest { read, mapped };

  /// From the files that save() wrote. Mapped pages come when they are touched and may go again.
  Rival(const std::filesystem::path& path, std::size_t dimension, Lowest lowest)
      : space_(dimension), index_(&space_, header_of(path).count, header_of(path).links) {
    const Header header = header_of(path);
    index_.cur_element_count = header.count;
    index_.maxlevel_ = header.top;
    index_.enterpoint_node_ = header.entry;
    const std::size_t bytes = header.count * index_.size_data_per_element_;
    if (lowest == Lowest::mapped) {
      const int file = open((path.native() + ".level0").c_str(), O_RDONLY | O_CLOEXEC);
      void* memory = file < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
      if (memory == MAP_FAILED) throw std::runtime_error("cannot map " + path.native());
      close(file);
      madvise(memory, bytes, MADV_RANDOM);
      free(index_.data_level0_memory_);
      index_.data_level0_memory_ = static_cast<char*>(memory);
      mapped_ = bytes;
    } else {
      std::ifstream(path.native() + ".level0", std::ios::binary)
          .read(index_.data_level0_memory_, static_cast<std::streamsize>(bytes));
    }
    std::ifstream in(path, std::ios::binary);
    in.seekg(sizeof(Header));
    for (std::size_t i = 0; i < header.count; ++i) {
      std::int32_t level = 0;
      in.read(reinterpret_cast<char*>(&level), sizeof level);
      index_.element_levels_[i] = level;
      index_.linkLists_[i] = nullptr;
      if (level == 0) continue;
      const std::size_t size = static_cast<std::size_t>(level) * index_.size_links_per_element_;
      index_.linkLists_[i] = static_cast<char*>(malloc(size));
      in.read(index_.linkLists_[i], static_cast<std::streamsize>(size));
    }
    if (!in) throw std::runtime_error("cannot read " + path.native());
  }
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;
  ~Rival() {
    if (mapped_ == 0) return;
    munmap(index_.data_level0_memory_, mapped_);
    index_.data_level0_memory_ = nullptr;
  }

  void save(const std::filesystem::path& path) {
    std::ofstream lowest(path.native() + ".level0", std::ios::binary);
    lowest.write(index_.data_level0_memory_,
                 static_cast<std::streamsize>(index_.cur_element_count * index_.size_data_per_element_));
    std::ofstream out(path, std::ios::binary);
    const Header header{index_.cur_element_count, index_.M_, index_.maxlevel_, index_.enterpoint_node_};
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    for (std::size_t i = 0; i < index_.cur_element_count; ++i) {
      const std::int32_t level = index_.element_levels_[i];
      out.write(reinterpret_cast<const char*>(&level), sizeof level);
      out.write(index_.linkLists_[i], static_cast<std::streamsize>(static_cast<std::size_t>(level) *
                                                                   index_.size_links_per_element_));
    }
    if (!lowest.flush() || !out.flush()) throw std::runtime_error("cannot write " + path.native());
  }

  std::vector<ann::Neighbour> search(std::span<const float> query, std::size_t k, std::size_t ef) {
    index_.setEf(ef);
    auto found = index_.searchKnn(query.data(), k);
    std::vector<ann::Neighbour> all(found.size());
    for (; !found.empty(); found.pop())
      all[found.size() - 1] = {static_cast<std::uint32_t>(found.top().second), found.top().first};
    return all;
  }
  ann::Neighbours search(const ann::Vectors& queries, std::size_t k, std::size_t ef) {
    ann::Neighbours all(queries.count());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = search(queries[i], k, ef);
    return all;
  }

 private:
  struct Header {
    std::uint64_t count = 0, links = 0;
    std::int32_t top = 0;
    std::uint32_t entry = 0;
  };
  static Header header_of(const std::filesystem::path& path) {
    Header header;
    if (!std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header))
      throw std::runtime_error("cannot read " + path.native());
    return header;
  }

  hnswlib::L2Space space_;
  hnswlib::HierarchicalNSW<float> index_;
  std::size_t mapped_ = 0;
};

}  // namespace terrace::bench
