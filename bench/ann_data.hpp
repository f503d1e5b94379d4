// SPDX-License-Identifier: Apache-2.0
// Vectors, queries and exact neighbours of the contests of vector search. What takes long to make is kept in
// a folder by a name that says how it was made.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "ann/generate.hpp"
#include "ann/pictures.hpp"
#include "base/random.hpp"
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
  ann::Metric metric = ann::Metric::l2;

  double recall_of(const ann::Neighbours& found, std::size_t k = kNeighbours) const {
    return ann::recall(found, truth, k);
  }
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
  Bytes whole(std::uint32_t links = ann::BuildOptions{}.links) const {
    return Bytes{vectors.count() * ((vectors.dimension + 2 * links + 1) * sizeof(float))};
  }
};

inline ann::Neighbours kept_truth(const AnnData& data) {
  const auto path = data.file(".ibin");
  if (auto kept = ann::read_neighbours(path)) return *std::move(kept);
  auto truth = ann::exact_neighbours(data.vectors, data.queries, kNeighbours, data.metric, 2).value();
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

/// Vectors whose lengths differ by the inner product, as recommendations have them: the long ones are near to
/// most queries, which makes them the hubs of every graph.
inline AnnData length_data(const std::filesystem::path& folder, std::size_t count) {
  ann::Mixture mixture;
  mixture.count = count;
  mixture.clusters = 200;
  AnnData data{fmt::format("lengths-{}", count), folder, ann::generate(mixture), {}, {}};
  // Lengths are of a Pareto distribution of power 4: one vector in 10,000 is ten times as long as the
  // shortest.
  SplitMix random(1);
  for (std::size_t row = 0; row < count; ++row) {
    const double share = (static_cast<double>(random.below(1U << 20)) + 0.5) / (1U << 20);
    const auto length = static_cast<float>(std::pow(share, -0.25));
    for (std::size_t i = 0; i < mixture.dimension; ++i)
      data.vectors.values[row * mixture.dimension + i] *= length;
  }
  mixture.count = 1000;
  data.queries = ann::generate(mixture, 1);
  data.warming = ann::generate(mixture, 3);
  data.metric = ann::Metric::inner_product;
  data.truth = kept_truth(data);
  return data;
}

/// Vectors and queries that are not made here: up to `most` of the one, up to 1000 of the other; further
/// queries warm caches, else the vectors themselves do.
inline AnnData given_data(const std::string& kind, const std::filesystem::path& folder, ann::Vectors vectors,
                          const ann::Vectors& queries) {
  constexpr std::size_t kQueries = 1000;
  const auto rows = [](const ann::Vectors& all, std::size_t first, std::size_t count) {
    const auto begin = all.values.begin() + static_cast<std::ptrdiff_t>(first * all.dimension);
    return ann::Vectors{all.dimension, {begin, begin + static_cast<std::ptrdiff_t>(count * all.dimension)}};
  };
  const std::size_t asked = std::min(kQueries, queries.count());
  const bool more = queries.count() >= 2 * kQueries;
  const std::string name = fmt::format("{}-{}", kind, vectors.count());
  AnnData data{name, folder, std::move(vectors), rows(queries, 0, asked), {}};
  data.warming =
      more ? rows(queries, asked, kQueries) : rows(data.vectors, 0, std::min(kQueries, data.vectors.count()));
  ann::write_vectors(data.file("-queries.fbin"), data.queries).value();
  data.truth = kept_truth(data);
  return data;
}

/// What a recipe of bench/data made, such as sift.u8bin and sift-queries.u8bin, as many as there are up to
/// `most`.
inline AnnData recipe_data(const std::filesystem::path& folder, const std::string& kind,
                           const std::string& ending, std::size_t most) {
  const auto path = folder / (kind + ending), queries = folder / (kind + "-queries" + ending);
  if (!std::filesystem::exists(path))
    throw std::runtime_error(
        fmt::format("there is no {0}: run bench/data/{2}.py {0} {1}", path.native(), queries.native(), kind));
  return given_data(kind, folder, ann::read_vectors(path, most).value(), ann::read_vectors(queries).value());
}
/// SIFT descriptors of pictures.
inline AnnData sift_data(const std::filesystem::path& folder, std::size_t most) {
  return recipe_data(folder, "sift", ".u8bin", most);
}

/// What is here, or of it the kind that is asked for: generated with and without hubs, real descriptors,
/// words, pictures by their pixels. `lengths`, which are near by the inner product, are for row `promotion`
/// alone.
inline std::vector<AnnData> all_data(const std::filesystem::path& folder, std::size_t count,
                                     const std::string& kind) {
  std::vector<AnnData> all;
  const auto wanted = [&](const char* name) { return kind.empty() || kind == name; };
  if (wanted("clustered")) all.push_back(mixed_data(folder, count, 0));
  if (wanted("hubs")) all.push_back(mixed_data(folder, count, 1));
  if (kind == "lengths") all.push_back(length_data(folder, count));
  if (wanted("sift") && std::filesystem::exists(folder / "sift.u8bin"))
    all.push_back(sift_data(folder, count));
  if (wanted("words") && std::filesystem::exists(folder / "words.fbin"))
    all.push_back(recipe_data(folder, "words", ".fbin", count));
  if (wanted("fashion-mnist") && std::filesystem::exists(kFashionMnistFolder))
    all.push_back(given_data("fashion-mnist", folder, ann::fashion_mnist(DataSplit::train).value(),
                             ann::fashion_mnist(DataSplit::test).value()));
  if (all.empty())
    throw std::runtime_error(
        "there is no data '" + kind +
        "': choose clustered, hubs, lengths, sift, words or fashion-mnist, made by bench/data");
  return all;
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
