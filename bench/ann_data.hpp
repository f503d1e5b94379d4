// SPDX-License-Identifier: Apache-2.0
// Vectors, queries and exact neighbours of the contests of vector search. What takes long to make is kept in
// a folder by a name that says how it was made.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>

#include "ann/generate.hpp"
#include "terrace/ann.hpp"

namespace terrace::bench {

using Timer = std::chrono::steady_clock;
inline double seconds_since(Timer::time_point began) {
  return std::chrono::duration<double>(Timer::now() - began).count();
}

constexpr std::size_t kNeighbours = 10;

struct AnnData {
  std::string name;
  std::filesystem::path folder;  ///< where what is made of it is kept
  ann::Vectors vectors, queries;
  ann::Neighbours truth;
  ann::Vectors warming = {};  ///< other queries, for caches

  double recall_of(const ann::Neighbours& found) const { return ann::recall(found, truth, kNeighbours); }
  /// The first of the queries, without the vectors.
  AnnData some_queries(std::size_t most) const {
    const std::size_t count = std::min(most, queries.count());
    const auto end = static_cast<std::ptrdiff_t>(count);
    const auto values = end * static_cast<std::ptrdiff_t>(queries.dimension);
    return {name,
            folder,
            {},
            {queries.dimension, {queries.values.begin(), queries.values.begin() + values}},
            {truth.begin(), truth.begin() + end}};
  }
  std::filesystem::path file(const std::string& what) const { return folder / (name + what); }
  /// Vectors and links of all nodes: what the shares of memory are shares of.
  Bytes whole() const {
    return Bytes{vectors.count() * ((vectors.dimension + 2 * ann::BuildOptions{}.links + 1) * sizeof(float))};
  }
};

inline ann::Neighbours kept_truth(const AnnData& data) {
  const auto path = data.file(".ibin");
  if (auto kept = ann::read_neighbours(path)) return *std::move(kept);
  auto truth = ann::exact_neighbours(data.vectors, data.queries, kNeighbours, ann::Metric::l2, 2).value();
  ann::write_neighbours(path, truth).value();
  return truth;
}

/// A mixture of clusters, the first of them far more common where it is skewed, and with hubs or without.
inline AnnData mixed_data(const std::filesystem::path& folder, std::size_t count, double hubs) {
  ann::Mixture mixture;
  mixture.count = count;
  mixture.clusters = 200;
  mixture.hubs = hubs;
  // Files are found again by this name, so it says all that differs.
  const std::string kind = hubs > 0 ? fmt::format("hubs{:g}", hubs) : "clustered";
  AnnData data{fmt::format("{}-{}", kind, count), folder, ann::generate(mixture), {}, {}};
  mixture.count = 1000;
  data.queries = ann::generate(mixture, 1);
  data.warming = ann::generate(mixture, 3);
  ann::write_vectors(data.file("-queries.fbin"), data.queries).value();
  data.truth = kept_truth(data);
  return data;
}

inline bool has_sift(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / "sift.u8bin");
}

/// SIFT descriptors that bench/data/sift.py made, as many as there are up to `most`.
inline AnnData sift_data(const std::filesystem::path& folder, std::size_t most) {
  const auto path = folder / "sift.u8bin", queries = folder / "sift-queries.u8bin";
  if (!has_sift(folder))
    throw std::runtime_error(
        fmt::format("there is no {0}: run bench/data/sift.py {0} {1}", path.native(), queries.native()));
  AnnData data{
      "", folder, ann::read_vectors(path, most).value(), ann::read_vectors(queries, 1000).value(), {}};
  data.name = fmt::format("sift-{}", data.vectors.count());
  // Of the pictures that gave the vectors, because others gave no more queries.
  data.warming = {
      data.vectors.dimension,
      {data.vectors.values.begin(),
       data.vectors.values.begin() + std::min<std::ptrdiff_t>(1000 * 128, std::ssize(data.vectors.values))}};
  ann::write_vectors(data.file("-queries.fbin"), data.queries).value();
  data.truth = kept_truth(data);
  return data;
}

/// Least and mean of what a run of queries took.
struct QueryTimes {
  std::vector<double> milliseconds;
  double mean() const {
    double sum = 0;
    for (const double one : milliseconds) sum += one;
    return sum / static_cast<double>(milliseconds.size());
  }
};

/// `search(query)` for each of the queries, timed one by one.
template <class Search>
QueryTimes time_queries(const ann::Vectors& queries, std::size_t first, std::size_t count, Search search) {
  QueryTimes times;
  for (std::size_t i = first; i < first + count; ++i) {
    const std::size_t at = i % queries.count();
    const auto began = Timer::now();
    search(at);
    times.milliseconds.push_back(seconds_since(began) * 1e3);
  }
  return times;
}

inline ann::Vectors one_of(const ann::Vectors& queries, std::size_t at) {
  return {queries.dimension, {queries[at].begin(), queries[at].end()}};
}

}  // namespace terrace::bench
