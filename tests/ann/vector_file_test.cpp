// SPDX-License-Identifier: Apache-2.0
#include "ann/vector_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "ann/made_vectors.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::ann {
namespace {

using Bytes8 = std::vector<std::byte>;

Bytes8 bytes(const std::string& text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}
std::string word(std::uint32_t number) {
  std::string text(4, '\0');
  std::memcpy(text.data(), &number, 4);
  return text;
}
std::string npy(const std::string& dictionary, const std::string& values) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(dictionary.size());
  text += '\0';
  return text + dictionary + values;
}
std::string complaint(VectorFormat format, const std::string& file) {
  const auto parsed = parse_vectors(format, bytes(file), "F");
  return parsed.ok() ? "none" : parsed.error().message;
}
void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(VectorFile, ReadsBackWhatItWrote) {
  const Vectors vectors = generate(mixture(17, 5));
  for (const auto format : {VectorFormat::fvecs, VectorFormat::fbin, VectorFormat::npy}) {
    const auto parsed = parse_vectors(format, print_vectors(format, vectors), "F").value();
    EXPECT_EQ(parsed.dimension, 5U);
    EXPECT_EQ(parsed.values, vectors.values);
    EXPECT_EQ(parse_vectors(format, print_vectors(format, vectors), "F", 3)->count(), 3U);
  }
}

TEST(VectorFile, ReadsBytesAsNumbers) {
  const std::vector<float> expected{1, 255, 0, 7};
  const std::string values("\x01\xff\x00\x07", 4);
  EXPECT_EQ(parse_vectors(VectorFormat::u8bin, bytes(word(2) + word(2) + values), "F")->values, expected);
  EXPECT_EQ(parse_vectors(VectorFormat::bvecs, bytes(word(4) + values), "F")->values, expected);
  const auto header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }          \n";
  EXPECT_EQ(parse_vectors(VectorFormat::npy, bytes(npy(header, values)), "F")->values, expected);
}

TEST(VectorFile, WritesAHeaderThatNumpyAligns) {
  const auto file = print_vectors(VectorFormat::npy, generate(mixture(3, 4)));
  EXPECT_EQ((file.size() - 3 * 4 * sizeof(float)) % 64, 0U);
}

TEST(VectorFile, RefusesWhatIsCutOffAtEveryByte) {
  const Vectors vectors = generate(mixture(3, 2));
  for (const auto format : {VectorFormat::fvecs, VectorFormat::fbin, VectorFormat::npy}) {
    const Bytes8 whole = print_vectors(format, vectors);
    const std::size_t row = format == VectorFormat::fvecs ? 12 : whole.size();
    for (std::size_t size = 0; size < whole.size(); ++size) {
      if (size % row == 0 && size > 0) continue;  // whole rows of fvecs are a file
      EXPECT_FALSE(parse_vectors(format, std::span(whole).first(size), "F").ok()) << size;
    }
  }
}

TEST(VectorFile, SaysWhatIsWrongWithIt) {
  expect_part(complaint(VectorFormat::fvecs, ""), "F holds no vector");
  expect_part(complaint(VectorFormat::fvecs, word(0)), "declares 0 dimensions where 1 to 65536 can be");
  expect_part(complaint(VectorFormat::fvecs, word(0xFFFFFFFF) + "1234"), "declares 4294967295 dimensions");
  expect_part(complaint(VectorFormat::bvecs, word(1) + "x" + word(2) + "xx"),
              "2 dimensions in row 1 and 1 before it");
  expect_part(complaint(VectorFormat::bvecs, word(3) + "xx"), "ends within row 0");
  expect_part(complaint(VectorFormat::fbin, "1234567"), "has no header of 8 bytes");
  expect_part(complaint(VectorFormat::fbin, word(0x80000000) + word(0x8000)), "declares 2147483648 rows");
  expect_part(complaint(VectorFormat::u8bin, word(1) + word(2) + "xxx"),
              "declares 1 rows of 2 bytes and holds 3");
  expect_part(complaint(VectorFormat::npy, "no numpy at all"), "does not begin as an npy file does");
  expect_part(complaint(VectorFormat::npy,
                        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", "12345678")),
              "save its astype('float32')");
  expect_part(
      complaint(VectorFormat::npy, npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "1234")),
      "Fortran's order");
  expect_part(
      complaint(VectorFormat::npy, npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "1234")),
      "two dimensions");
  expect_part(complaint(VectorFormat::npy, npy("{'descr': '<f4', 'shape': (1, 1), }", "1234")),
              "without descr, fortran_order and shape");
  expect_part(complaint(VectorFormat::npy, npy("{'descr': '<f4'", "")), "no dictionary");
}

TEST(VectorFile, IsNamedInTheSentence) {
  const TemporaryFolder folder;
  const auto at = [&](const char* name) { return folder.path() / name; };
  expect_part(read_vectors(at("none.fvecs")).error().message, "none.fvecs");
  expect_part(read_vectors(at("data.csv")).error().message,
              "ends in .fvecs, .bvecs, .fbin, .u8bin, .npy or .hdf5");
  const Vectors good = generate(mixture(4, 3));
  ASSERT_TRUE(write_vectors(at("good.fbin"), good).ok());
  EXPECT_EQ(read_vectors(at("good.fbin"))->values, good.values);
  expect_part(write_vectors(at("x.bvecs"), good).error().message, "the vectors are floats");
  ASSERT_TRUE(write_vectors(at("nan.npy"), rows({{1}, {std::numeric_limits<float>::quiet_NaN()}})).ok());
  expect_part(read_vectors(at("nan.npy")).error().message,
              "nan.npy: vector 1 holds a value that is no finite");
}

}  // namespace
}  // namespace terrace::ann
