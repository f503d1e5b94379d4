// SPDX-License-Identifier: Apache-2.0
#include "data/fashion_mnist.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "data/made_files.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

using data_test::ByteList;
using data_test::gzip;
using data_test::idx;
using data_test::mentions;

constexpr std::uint32_t kSide = kFashionMnistSide;

// A dataset of three pictures, the files of which a test replaces.
class FashionMnist : public ::testing::Test {
 protected:
  FashionMnist() {
    put_images(idx({3, kSide, kSide}, pixels_));
    put_labels(idx({3}, {7, 0, 9}));
  }

  void put_images(const ByteList& bytes) { data_test::put(images(), gzip(bytes)); }
  void put_labels(const ByteList& bytes) { data_test::put(labels(), gzip(bytes)); }
  std::string images() const { return folder_ / "train-images-idx3-ubyte.gz"; }
  std::string labels() const { return folder_ / "train-labels-idx1-ubyte.gz"; }
  Result<LabelledImages> load(DataSplit split = DataSplit::train) const {
    return load_fashion_mnist(split, folder_.path());
  }
  std::string refusal() const {
    const auto loaded = load();
    return loaded ? "" : loaded.error().message;
  }

  TemporaryFolder folder_;
  ByteList pixels_ = ByteList(3 * kSide * kSide, 5);
};

TEST_F(FashionMnist, LoadsImagesWithTheirLabels) {
  const auto loaded = load();
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->count(), 3u);
  EXPECT_EQ(loaded->rows, kSide);
  EXPECT_EQ(loaded->columns, kSide);
  EXPECT_EQ(loaded->pixels, pixels_);
  EXPECT_EQ(loaded->labels, (ByteList{7, 0, 9}));
}

TEST_F(FashionMnist, NamesThePackageAndTheOptionWhereAFileIsMissing) {
  const auto loaded = load(DataSplit::test);
  ASSERT_FALSE(loaded);
  for (const char* part :
       {"t10k-images-idx3-ubyte.gz", "apt-get install dataset-fashion-mnist", "--data-folder"})
    EXPECT_TRUE(mentions(loaded.error().message, part)) << loaded.error().message;
  std::filesystem::remove(labels());
  EXPECT_TRUE(mentions(refusal(), labels())) << refusal();
}

TEST_F(FashionMnist, RefusesALabelOutOfRange) {
  put_labels(idx({3}, {7, 10, 9}));
  EXPECT_TRUE(mentions(refusal(), "gives picture 1 the label 10")) << refusal();
}

TEST_F(FashionMnist, RefusesCountsThatDiffer) {
  put_labels(idx({2}, {7, 0}));
  EXPECT_TRUE(mentions(refusal(), "holds 2 labels for 3 pictures")) << refusal();
}

TEST_F(FashionMnist, RefusesOtherDimensions) {
  put_images(idx({4, kSide, 21}, pixels_));
  EXPECT_TRUE(mentions(refusal(), "4 x 28 x 21")) << refusal();
  put_images(idx({0, kSide, kSide}, {}));
  EXPECT_TRUE(mentions(refusal(), "holds no picture")) << refusal();
  put_images(idx({3, kSide, kSide}, pixels_));
  put_labels(idx({3, 1}, {7, 0, 9}));
  EXPECT_TRUE(mentions(refusal(), "list of labels")) << refusal();
}

TEST_F(FashionMnist, RefusesDamagedFiles) {
  data_test::put(images(), {1, 2, 3});
  EXPECT_TRUE(mentions(refusal(), images())) << refusal();
}

TEST(FashionMnistPackage, HoldsTheDatasetItPromises) {
  if (!std::filesystem::exists(kFashionMnistFolder))
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  for (const auto& [split, count] :
       {std::pair(DataSplit::train, 60'000u), std::pair(DataSplit::test, 10'000u)}) {
    const auto loaded = load_fashion_mnist(split);
    ASSERT_TRUE(loaded) << loaded.error().message;
    ASSERT_EQ(loaded->count(), count);
    EXPECT_EQ(loaded->pixels.size(), std::size_t{count} * kSide * kSide);
    // The classes are equally large.
    std::array<unsigned, kFashionMnistClasses> of_class{};
    for (const std::uint8_t label : loaded->labels) ++of_class[label];
    for (const unsigned size : of_class) EXPECT_EQ(size, count / kFashionMnistClasses);
  }
}

}  // namespace
}  // namespace terrace
