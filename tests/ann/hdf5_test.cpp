// SPDX-License-Identifier: Apache-2.0
// files/small.hdf5 was made with h5py: `train` counts from 0 to 14 in five rows of three, `test` are its
// first two rows negated, `bytes` the same numbers as bytes; `doubles`, `line` and `chunks` are what is not
// read.
#include <gtest/gtest.h>

#include "ann/files.hpp"
#include "ann/hdf5_file.hpp"
#include "ann/vector_source.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::ann {
namespace {

const std::string kFile = std::string(TERRACE_TESTS) + "/ann/files/small.hdf5";

std::string complaint(const std::string& path) {
  const auto read = read_vectors(path);
  return read ? "none" : read.error().message;
}
void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

class Hdf5 : public testing::Test {
 protected:
  void SetUp() override {
    if (complaint(kFile).find("not installed") != std::string::npos)
      GTEST_SKIP() << "the HDF5 library is not installed";
  }
};

TEST(Hdf5Name, ChoosesAMatrixBehindAColon) {
  EXPECT_EQ(parse_hdf5_name("a/b.hdf5")->matrix, "train");
  EXPECT_EQ(parse_hdf5_name("a/b.hdf5:test")->file, "a/b.hdf5");
  EXPECT_EQ(parse_hdf5_name("a/b.h5:test")->matrix, "test");
  EXPECT_FALSE(parse_hdf5_name("a/b.hdf5x"));
  EXPECT_FALSE(parse_hdf5_name("a/b.fbin"));
}

TEST_F(Hdf5, GivesVectorsAndQueriesOfFloatsOrBytes) {
  const Vectors train = read_vectors(kFile).value();
  ASSERT_EQ(train.dimension, 3U);
  ASSERT_EQ(train.count(), 5U);
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(train.values[i], static_cast<float>(i));
  EXPECT_EQ(read_vectors(kFile + ":bytes")->values, train.values);
  const Vectors test = read_vectors(kFile + ":test").value();
  ASSERT_EQ(test.count(), 2U);
  EXPECT_EQ(test.values[5], -5.0F);
  EXPECT_EQ(read_vectors(kFile, 3)->count(), 3U);
}

TEST_F(Hdf5, IsReadRowByRow) {
  const auto source = VectorSource::open(kFile).value();
  float row[3] = {};
  source.read(4, row);
  EXPECT_EQ(row[2], 14.0F);
}

TEST_F(Hdf5, SaysWhatItCannotRead) {
  expect_part(complaint(kFile + ":absent"), "has no matrix 'absent'");
  expect_part(complaint(kFile + ":doubles"), "neither 32-bit floats nor bytes");
  expect_part(complaint(kFile + ":line"), "no matrix of two dimensions");
  expect_part(complaint(kFile + ":chunks"), "h5repack");
  const auto written = write_vectors("/nowhere/x.hdf5", {3, {1, 2, 3}});
  ASSERT_FALSE(written.ok());
  expect_part(written.error().message, "HDF5 is read and not written");
}

TEST_F(Hdf5, CutOffAnywhereIsRefused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "cut.hdf5";
  const std::string whole = contents(kFile);
  for (std::size_t size = 0; size < whole.size(); size += 16) {
    put(path, whole.substr(0, size));
    EXPECT_NE(complaint(path), "none") << size;
  }
}

}  // namespace
}  // namespace terrace::ann
