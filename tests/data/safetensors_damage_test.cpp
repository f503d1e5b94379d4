// SPDX-License-Identifier: Apache-2.0
// Files that no writer should make: each is refused, with the sentence that says why.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "data/made_files.hpp"
#include "data/safetensors.hpp"
#include "support/stress_factor.hpp"

namespace terrace::safetensors {
namespace {

using data_test::mentions;

std::string file_of(const std::string& header, std::size_t data, std::uint64_t declared) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(declared >> 8 * i));
  return file + header + std::string(data, 'd');
}
std::string file_of(const std::string& header, std::size_t data) {
  return file_of(header, data, header.size());
}

std::string refusal(const std::string& file) {
  const auto read = parse(std::as_bytes(std::span(file)), "made");
  return read ? "" : read.error().message;
}

// One tensor, called `a` as in every header below.
std::string entry_of(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + offsets + "]";
}
std::string one(const std::string& fields) { return "{\"a\":{" + fields + "}}"; }

// What follows the common start of two tensors: their offsets, in 8 bytes of data.
std::string two(const std::string& first, const std::string& second) {
  return "{\"a\":{" + entry_of("U8", "4", first) + "},\"b\":{" + entry_of("U8", "4", second) + "}}";
}

struct Case {
  const char* what;
  std::string file;
  std::string sentence;
};

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& damage : cases) {
    EXPECT_TRUE(mentions(refusal(damage.file), damage.sentence))
        << damage.what << ": " << refusal(damage.file);
    EXPECT_TRUE(mentions(refusal(damage.file), "made ")) << damage.what;
  }
}

TEST(SafetensorsDamage, ASoundFileIsRead) {
  EXPECT_EQ(refusal(file_of(one(entry_of("F32", "2", "0,8")), 8)), "");
  EXPECT_EQ(refusal(file_of(two("0,4", "4,8") + "   ", 8)), "");
  EXPECT_EQ(refusal(file_of(two("4,8", "0,4"), 8)), "");
  EXPECT_EQ(refusal(file_of("{}", 0)), "");
  EXPECT_EQ(refusal(file_of(one(entry_of("F32", "0,5", "0,0")), 0)), "");
  EXPECT_EQ(refusal(file_of(R"({"__metadata__":{}})", 0)), "");
}

TEST(SafetensorsDamage, LengthIsRefused) {
  expect_refused({
      {"empty", "", "has 0 bytes, too few"},
      {"half a length", std::string(7, '\0'), "has 7 bytes, too few"},
      {"no header", file_of("", 0), "does not start with '{'"},
      {"beyond the limit", file_of("{}", 0, 100'000'001), "where at most 100000000 are read"},
      {"beyond any limit", file_of("{}", 0, ~std::uint64_t{0}), "where at most"},
      {"beyond the file", file_of("{}", 0, 3), "declares a header of 3 bytes and has 2"},
  });
}

TEST(SafetensorsDamage, TextIsRefused) {
  expect_refused({
      {"no object", file_of("[]", 0), "does not start with '{'"},
      {"space first", file_of(" {}", 0), "does not start with '{'"},
      {"not closed", file_of("{\"a\":", 0), "not JSON at its byte"},
      {"two values", file_of("{}{}", 0), "not JSON at its byte"},
      {"not UTF-8", file_of("{\"\xff\":1}", 0), "not JSON at its byte"},
      {"a zero", file_of(std::string("{}\0[", 4), 0), "a zero byte in it"},
      {"a huge number", file_of(one("\"shape\":[1e999]"), 0), "not JSON"},
  });
}

TEST(SafetensorsDamage, WrongTypesAreRefused) {
  expect_refused({
      {"tensor is a number", file_of(R"({"a":1})", 0), "a number stands where tensor 'a' has no place"},
      {"tensor is a text", file_of(R"({"a":"b"})", 0), "a text stands where tensor 'a'"},
      {"tensor is null", file_of(R"({"a":null})", 0), "null stands where tensor 'a'"},
      {"tensor is a list", file_of(R"({"a":[]})", 0), "a list stands where tensor 'a'"},
      {"dtype is a number", file_of(one("\"dtype\":4"), 0), "a number stands where"},
      {"dtype is an object", file_of(one("\"dtype\":{}"), 0), "an object stands where"},
      {"shape is a number", file_of(one("\"shape\":4"), 0), "a number stands where"},
      {"shape is nested", file_of(one("\"shape\":[[1]]"), 0), "a list stands where"},
      {"shape is negative", file_of(one("\"shape\":[-1]"), 0), "a negative number stands where"},
      {"shape is a fraction", file_of(one("\"shape\":[1.0]"), 0), "a fraction or a huge number"},
      {"shape is beyond 64 bits", file_of(one("\"shape\":[18446744073709551616]"), 0), "a huge number"},
      {"offsets are truth", file_of(one("\"data_offsets\":[true,false]"), 0), "a truth value stands where"},
      {"metadata is a list", file_of(R"({"__metadata__":[]})", 0), "a list stands where the format"},
      {"metadata is a number", file_of(R"({"__metadata__":{"k":1}})", 0), "a number stands where the format"},
      {"metadata is nested", file_of(R"({"__metadata__":{"k":{}}})", 0), "an object stands where the format"},
  });
}

TEST(SafetensorsDamage, FieldsAreRefused) {
  const std::string sound = entry_of("U8", "4", "0,4");
  expect_refused({
      {"unknown dtype", file_of(one(entry_of("F8_E4M3", "4", "0,4")), 4),
       "dtype 'F8_E4M3', which is none of"},
      {"unknown field", file_of(one(sound + ",\"stride\":[1]"), 4), "the unknown field 'stride'"},
      {"no dtype", file_of(one(R"("shape":[4],"data_offsets":[0,4])"), 4), "tensor 'a' has no dtype"},
      {"no shape", file_of(one(R"("dtype":"U8","data_offsets":[0,4])"), 4), "tensor 'a' has no shape"},
      {"no offsets", file_of(one(R"("dtype":"U8","shape":[4])"), 4), "tensor 'a' has no data_offsets"},
      {"one offset", file_of(one(entry_of("U8", "4", "0")), 4), "has 1 data_offsets where two"},
      {"three offsets", file_of(one(entry_of("U8", "4", "0,4,4")), 4), "more than two data_offsets"},
      {"field twice", file_of(one(sound + ",\"shape\":[4]"), 4), "tensor 'a' has its shape twice"},
      {"name twice", file_of("{\"a\":{" + sound + "},\"a\":{" + sound + "}}", 4), "the name 'a' comes twice"},
      {"metadata twice", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0),
       "'__metadata__' comes twice"},
      {"metadata key twice", file_of(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "metadata 'k' comes twice"},
  });
  const std::string file = file_of(one(entry_of("F16", "2", "0,4")), 4);
  EXPECT_EQ(parse(std::as_bytes(std::span(file)), "made").error().code, ErrorCode::unsupported);
}

TEST(SafetensorsDamage, OffsetsAreRefused) {
  expect_refused({
      {"backwards", file_of(one(entry_of("U8", "4", "4,0")), 4), "ends at 0 before it begins at 4"},
      {"past the end", file_of(one(entry_of("U8", "4", "0,4")), 3), "ends at 4 where there are 3 bytes"},
      {"far past the end", file_of(one(entry_of("U8", "4", "18446744073709551611,18446744073709551615")), 4),
       "where there are 4 bytes"},
      {"a hole at the start", file_of(one(entry_of("U8", "4", "1,5")), 5), "after a hole from 0"},
      {"a hole between", file_of(two("0,4", "5,9"), 9), "'b' that begins at 5, after a hole from 4"},
      {"bytes at the end", file_of(one(entry_of("U8", "4", "0,4")), 6), "2 bytes that belong to no tensor"},
      {"bytes of nobody", file_of("{}", 1), "1 bytes that belong to no tensor"},
      {"overlap", file_of(two("0,4", "3,7"), 7), "'b' that begins at 3, inside the one that ends at 4"},
      {"the same bytes", file_of(two("0,4", "0,4"), 4), "inside the one that ends at 4"},
  });
}

TEST(SafetensorsDamage, ShapesAreRefused) {
  expect_refused({
      {"too few bytes", file_of(one(entry_of("F32", "2", "0,4")), 4), "needs 8 bytes and has 4"},
      {"too many bytes", file_of(one(entry_of("F32", "", "0,8")), 8), "needs 4 bytes and has 8"},
      {"wraps to what is there", file_of(one(entry_of("I64", "4611686018427387904,4,2", "0,0")), 0),
       "needs more than 2^64 bytes"},
      {"element size wraps", file_of(one(entry_of("I64", "2305843009213693952", "0,0")), 0),
       "more than 2^64"},
  });
}

TEST(SafetensorsDamage, DeepNestingIsRefusedAtOnce) {
  const std::string deep = R"({"a":{"shape":)" + std::string(1'000'000, '[');
  EXPECT_TRUE(mentions(refusal(file_of(deep, 0)), "a list stands where tensor 'a'"));
}

TEST(SafetensorsDamage, NoTruncationIsTakenForAFile) {
  const std::string file = file_of(two("0,4", "4,8"), 8);
  for (std::size_t kept = 0; kept < file.size(); ++kept) EXPECT_NE(refusal(file.substr(0, kept)), "") << kept;
}

TEST(SafetensorsDamage, WhateverIsReadLiesInTheFile) {
  const std::string sound = file_of(two("0,4", "4,8"), 8);
  SplitMix random(9);
  for (int round = 0; round < 20'000 * stress_factor(); ++round) {
    std::string file = sound;
    for (auto changes = 1 + random.below(3); changes > 0; --changes)
      file[random.below(file.size())] = static_cast<char>(random.next());
    const auto read = parse(std::as_bytes(std::span(file)), "made");
    if (!read) continue;
    std::uint64_t bytes = 0;
    for (const Tensor& tensor : read->tensors) bytes += tensor.bytes.size();
    EXPECT_EQ(bytes, 8u);
  }
}

}  // namespace
}  // namespace terrace::safetensors
