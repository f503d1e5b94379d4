// Vector search when the vectors do not fit in memory: HM-ANN (002 chapter 3) over the tiers of this library.
//
//   vectors     rows of floats of one dimension; a vector's id is its row
//   metric      what "near" means; distances are lower for nearer vectors
//   neighbour   an id and its distance to a query
//
// Plain data here may be copied freely; functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "terrace/result.hpp"

namespace terrace::ann {

/// The distance is the squared Euclidean one, the negated inner product, or one minus the cosine of the
/// angle. A zero vector has the cosine 0 to every other.
enum class Metric : std::uint8_t { l2, inner_product, cosine };

/// `l2`, `ip`, `cosine`.
std::string_view to_string(Metric metric);
Result<Metric> parse_metric(std::string_view name);

struct Vectors {
  std::size_t dimension = 0;
  std::vector<float> values;  ///< row by row

  std::size_t count() const noexcept { return dimension == 0 ? 0 : values.size() / dimension; }
  std::span<const float> operator[](std::size_t row) const {
    return std::span(values).subspan(row * dimension, dimension);
  }
};

struct Neighbour {
  std::uint32_t id = 0;
  float distance = 0;
  bool operator==(const Neighbour&) const = default;
};

/// For each query its neighbours, nearest first; of equal distances the smaller id comes first.
using Neighbours = std::vector<std::vector<Neighbour>>;

/// More dimensions than this are refused.
inline constexpr std::size_t kMostDimensions = 65536;

/// Reads the format that the path's ending names: fvecs, bvecs, fbin, u8bin, npy (two dimensions, C order,
/// `<f4` or `|u1`). Fails with one sentence where the file is missing, damaged, empty of dimensions, or holds
/// what is no finite number; throws EnvironmentError where the disk fails. `most`: no more rows than that.
Result<Vectors> read_vectors(const std::filesystem::path& path, std::size_t most = SIZE_MAX);

/// Writes fvecs, fbin or npy, by the path's ending. Fails and throws as replacing a file does.
Result<void> write_vectors(const std::filesystem::path& path, const Vectors& vectors);

/// The exact answer, by comparing every query with every vector in double precision: the oracle of recall.
/// `k` above the number of vectors gives them all. Fails as an index does on the same input.
Result<Neighbours> exact_neighbours(const Vectors& vectors, const Vectors& queries, std::size_t k,
                                    Metric metric, unsigned threads = 1);

/// The share of each query's k exact neighbours that were found; an answer as near as the k-th exact one
/// counts, whichever id it has. One where there is nothing to find. pre: as many answers as truths
double recall(const Neighbours& found, const Neighbours& truth, std::size_t k);

}  // namespace terrace::ann
