// SPDX-License-Identifier: Apache-2.0
// Vector search in less than a quarter of the memory: the lowest layer of the index stays on the disk.
//
//   nearest_vectors [FOLDER-FOR-THE-INDEX]
#include <cstdio>
#include <filesystem>
#include <random>
#include <terrace/ann.hpp>

namespace ann = terrace::ann;
using namespace terrace::literals;

namespace {

ann::Vectors random_vectors(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  ann::Vectors vectors{32, {}};
  for (std::size_t i = 0; i < count * vectors.dimension; ++i) vectors.values.push_back(normal(random));
  return vectors;
}

int run(const std::filesystem::path& folder) {
  const ann::Vectors vectors = random_vectors(10'000, 1), queries = random_vectors(50, 2);
  const auto truth = ann::exact_neighbours(vectors, queries, 10, ann::Metric::l2).value();

  ann::BuildOptions options;
  options.cache = 200_KB;
  options.fast = 600_KB;  // of 2.6 MB
  ann::Index::build(vectors, options).value().save(folder).value();

  const auto index =
      ann::Index::open(folder, {.placement = ann::Placement::disk, .cache = options.cache}).value();
  const auto found = index.search(queries, 10, {.ef1 = 60, .ef0 = 100, .beam = 4}).value();

  const ann::IndexSize size = index.size();
  const ann::SearchStatistics done = index.statistics();
  std::printf("%llu of %llu vectors in %s of fast memory, the rest in %s of disk\n",
              static_cast<unsigned long long>(size.promoted), static_cast<unsigned long long>(size.vectors),
              readable(size.fast()).c_str(), readable(size.slow()).c_str());
  std::printf("recall %.3f with %.0f reads of the disk a query\n", ann::recall(found, truth, 10),
              static_cast<double>(done.reads) / static_cast<double>(done.queries));
  return size.fast() <= options.fast ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc > 1 ? argv[1] : "terrace.index");
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
