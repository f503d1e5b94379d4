// SPDX-License-Identifier: Apache-2.0
// Vectors of whole numbers from 0 to 255 lie on a disk as bytes, and every answer stays the same.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ann/element.hpp"
#include "ann/files.hpp"
#include "ann/made_vectors.hpp"
#include "ann/manifest.hpp"
#include "ann/shards.hpp"
#include "support/tiers.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::ann {
namespace {

using namespace literals;

constexpr SearchOptions kSearch{.ef1 = 20, .ef0 = 30};

/// From the least to the greatest of the mixture's values in 256 steps.
Vectors made_bytes(std::size_t count, std::size_t dimension, std::uint64_t seed = 0) {
  Vectors vectors = generate(mixture(count, dimension), seed);
  const auto [least, most] = std::minmax_element(vectors.values.begin(), vectors.values.end());
  const float low = *least, step = (*most - low) / 255;
  for (float& value : vectors.values) value = std::round((value - low) / step);
  return vectors;
}

ElementType element_in(const std::filesystem::path& index) {
  return parse_manifest(contents(index / "manifest.json"))->element;
}

TEST(Elements, AreBytesWhereTheyLoseNothing) {
  const auto type = [](std::vector<float> values) { return smallest_type(values); };
  EXPECT_EQ(type({0, 1, 254, 255}), ElementType::u8);
  for (const float other : {256.0F, -1.0F, 0.5F, 254.9999F, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(type({0, other, 1}), ElementType::f32) << other;
}

TEST(Elements, AreReadAsTheyWereWritten) {
  const std::vector<float> values{0, 7, 128, 255};
  for (const ElementType type : {ElementType::f32, ElementType::u8}) {
    std::vector<std::byte> bytes(size_of(type) * values.size());
    write_elements(type, values, bytes.data());
    std::vector<float> again(values.size());
    read_elements(type, bytes.data(), again);
    EXPECT_EQ(again, values);
  }
}

/// Of dimensions that are whole words as bytes, and that are not; and of units of more than one block, whose
/// records cross the pieces that checksums are of.
class ByteIndex : public testing::TestWithParam<std::size_t> {
 protected:
  ByteIndex() {
    options_.links = 8;
    options_.ef_construction = 60;
    options_.cache = 400_KB;
    // An upper layer of some 200 nodes.
    options_.fast = options_.cache + Bytes{200 * (dimension() * sizeof(float) + 120)} + 20_KB;
  }
  std::size_t dimension() const { return GetParam(); }
  std::filesystem::path path(const char* name = "index") const { return folder_.path() / name; }

  TemporaryFolder folder_;
  const Vectors vectors_ = made_bytes(1200, dimension()), queries_ = generate(mixture(30, dimension()), 1);
  BuildOptions options_;
};

TEST_P(ByteIndex, AnswersTheSameWhereverItLies) {
  const Index built = Index::build(vectors_, options_).value();
  const Neighbours expected = built.search(queries_, 10, kSearch).value();
  built.save(path()).value();
  EXPECT_EQ(element_in(path()), ElementType::u8);
  for (const Placement placement : {Placement::memory, Placement::disk}) {
    const Index index = Index::open(path(), {.placement = placement, .cache = 400_KB}).value();
    EXPECT_EQ(index.search(queries_, 10, kSearch).value(), expected);
  }
  const auto tier = open_tier("fake:16MiB,blocks").value();
  const Index in_tier = Index::build(vectors_, options_, tier.get()).value();
  EXPECT_EQ(in_tier.search(queries_, 10, kSearch).value(), expected);
  EXPECT_EQ(in_tier.size().slow_elements.count, (1200 - in_tier.size().promoted) * dimension());
  EXPECT_TRUE(verify_index(path()).ok());
}

TEST_P(ByteIndex, TakesAQuarterOnTheDiskAndIsTheSameFileWhenSavedAgain) {
  Index::build(vectors_, options_).value().save(path()).value();
  Vectors halves = vectors_;
  for (float& value : halves.values) value /= 2;
  Index::build(halves, options_).value().save(path("floats")).value();
  EXPECT_EQ(element_in(path("floats")), ElementType::f32);
  const auto elements = [&](const char* name) {
    return Index::open(path(name), {.placement = Placement::disk, .cache = 400_KB})->size().slow_elements;
  };
  EXPECT_EQ(elements("index") * 4, elements("floats"));
  EXPECT_LT(std::filesystem::file_size(path() / "slow.bin"),
            std::filesystem::file_size(path("floats") / "slow.bin"));
  Index::open(path())->save(path("again")).value();
  for (const char* name : {"manifest.json", "fast.bin", "slow.bin"})
    EXPECT_EQ(contents(path() / name), contents(path("again") / name)) << name;
}

TEST_P(ByteIndex, BecomesOneOfFloatsWithAVectorThatIsNoBytes) {
  Index index = Index::build(vectors_, options_).value();
  Vectors half{dimension(), std::vector<float>(dimension(), 0.5F)};
  ASSERT_TRUE(index.add(half).ok());
  index.save(path()).value();
  EXPECT_EQ(element_in(path()), ElementType::f32);
  const Index opened = Index::open(path(), {.placement = Placement::disk, .cache = 400_KB}).value();
  EXPECT_EQ(opened.search(half, 1, kSearch).value()[0][0], (Neighbour{1200, 0}));
}
INSTANTIATE_TEST_SUITE_P(OfDimensions, ByteIndex, testing::Values(24U, 25U, 1100U));

TEST(ByteBuild, LargerThanMemoryKeepsTheBytesOfItsFile) {
  const TemporaryFolder folder;
  const Vectors vectors = made_bytes(3000, 24), queries = made_bytes(50, 24, 1);
  const std::uint32_t header[] = {3000, 24};
  std::string file(reinterpret_cast<const char*>(header), sizeof header);
  for (const float value : vectors.values) file += static_cast<char>(static_cast<unsigned char>(value));
  put(folder.path() / "data.u8bin", file);
  const Neighbours truth = exact_neighbours(vectors, queries, 10, Metric::l2).value();
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    BuildOptions options = small_build(6);
    options.metric = metric;
    const Bytes memory = shard_row_bytes(24, options.links) * 900 + Bytes{24 + 6} * 3000 + 8_MiB;
    build_index(folder.path() / "data.u8bin", folder.path() / "index", options, memory).value();
    EXPECT_EQ(element_in(folder.path() / "index"), metric == Metric::l2 ? ElementType::u8 : ElementType::f32);
    const Index memory_index = Index::open(folder.path() / "index").value();
    const Index disk = Index::open(folder.path() / "index", {.placement = Placement::disk}).value();
    const Neighbours found = disk.search(queries, 10, kSearch).value();
    EXPECT_EQ(found, memory_index.search(queries, 10, kSearch).value());
    if (metric == Metric::l2) {
      EXPECT_GE(recall(found, truth, 10), 0.9);
    }
  }
}

}  // namespace
}  // namespace terrace::ann
