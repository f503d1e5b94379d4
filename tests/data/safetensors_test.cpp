// SPDX-License-Identifier: Apache-2.0
#include "data/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <stdexcept>

#include "base/random.hpp"
#include "data/made_files.hpp"
#include "support/stress_factor.hpp"
#include "terrace/error.hpp"
#include "tiers/temporary_folder.hpp"
#include "tiers_file/mount.hpp"

namespace terrace::safetensors {
namespace {

using data_test::ByteList;

ByteList noise(SplitMix& random, std::size_t count) {
  ByteList bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
  return bytes;
}

// Tensors with bytes of their own.
class Made {
 public:
  void add(std::string name, DType dtype, std::vector<std::uint64_t> shape, SplitMix& random) {
    std::uint64_t count = size_of(dtype).count;
    for (const std::uint64_t dim : shape) count *= dim;
    bytes_.push_back(noise(random, count));
    tensors_.push_back({std::move(name), dtype, std::move(shape), {}});
  }
  std::vector<Tensor> tensors() const {
    auto views = tensors_;
    for (std::size_t i = 0; i < views.size(); ++i) views[i].bytes = std::as_bytes(std::span(bytes_[i]));
    return views;
  }

 private:
  std::vector<Tensor> tensors_;
  std::vector<ByteList> bytes_;
};

bool same(const Tensor& a, const Tensor& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

Made random_tensors(SplitMix& random) {
  const char* pieces[] = {"layer", ".", "weight", "\"", "\\", "\n", "ä", "日本", "\t", "0", "_", "é"};
  Made made;
  const auto count = random.below(20);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name = std::to_string(i) + ":";
    for (auto more = random.below(5); more > 0; --more) name += pieces[random.below(std::size(pieces))];
    std::vector<std::uint64_t> shape(random.below(4));
    for (auto& dim : shape) dim = random.below(7);
    made.add(name, static_cast<DType>(random.below(5)), shape, random);
  }
  return made;
}

TEST(Safetensors, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  SplitMix random(1);
  for (int round = 0; round < 50 * stress_factor(); ++round) {
    const Made made = random_tensors(random);
    const auto tensors = made.tensors();
    Metadata metadata;
    for (auto more = random.below(3); more > 0; --more)
      metadata[std::to_string(more)] = "\"" + std::to_string(random.next());
    write(path, tensors, metadata).value();
    const File file = read(path).value();
    EXPECT_EQ(file.metadata(), metadata);
    ASSERT_EQ(file.tensors().size(), tensors.size());
    for (const Tensor& tensor : tensors) {
      const Tensor* found = file.find(tensor.name);
      ASSERT_NE(found, nullptr) << tensor.name;
      EXPECT_TRUE(same(*found, tensor)) << tensor.name;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found->bytes.data()) % size_of(tensor.dtype).count, 0u);
    }
  }
}

TEST(Safetensors, WritesTheBytesTheFormatAsksFor) {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const std::uint8_t one[] = {1}, two[] = {2, 3, 4, 5};
  const Tensor tensors[] = {{"b", DType::u8, {1}, std::as_bytes(std::span(one))},
                            {"a", DType::f32, {}, std::as_bytes(std::span(two))}};
  write(path, tensors, {{"k", "v"}}).value();
  std::string header = R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string expected(8, '\0');
  expected[0] = static_cast<char>(header.size());
  expected += header + "\2\3\4\5\1";
  std::ifstream in(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), expected);
}

TEST(Safetensors, ReadsAFileOfNothing) {
  const TemporaryFolder folder;
  write(folder / "x", {}).value();
  const File file = read(folder / "x").value();
  EXPECT_TRUE(file.tensors().empty());
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_EQ(file.find("x"), nullptr);
}

TEST(Safetensors, AnOpenFileOutlivesItsReplacement) {
  const TemporaryFolder folder;
  SplitMix random(3);
  Made first, second;
  first.add("w", DType::i64, {1000}, random);
  second.add("w", DType::i64, {10}, random);
  write(folder / "x", first.tensors()).value();
  const File old = read(folder / "x").value();
  write(folder / "x", second.tensors()).value();
  EXPECT_TRUE(same(*old.find("w"), first.tensors()[0]));
  EXPECT_TRUE(same(*read(folder / "x").value().find("w"), second.tensors()[0]));
}

TEST(Safetensors, RejectsWrongCalls) {
  const TemporaryFolder folder;
  const std::byte bytes[8] = {};
  const Tensor fine{"a", DType::f32, {2}, bytes};
  const auto writing = [&](std::vector<Tensor> tensors, const Metadata& metadata = {}) {
    return [&folder, tensors, metadata] { (void)write(folder / "x", tensors, metadata); };
  };
  EXPECT_THROW(writing({fine, fine})(), std::logic_error);
  EXPECT_THROW(writing({{"a", DType::f32, {3}, bytes}})(), std::logic_error);
  EXPECT_THROW(writing({{"a", DType::f32, {1ull << 62, 8}, {}}})(), std::logic_error);
  EXPECT_THROW(writing({{"__metadata__", DType::f32, {2}, bytes}})(), std::logic_error);
  EXPECT_THROW(writing({{"\xff", DType::f32, {2}, bytes}})(), std::logic_error);
  EXPECT_THROW(writing({fine}, {{"k", "\xff"}})(), std::logic_error);
  EXPECT_TRUE(folder.empty());
}

TEST(Safetensors, RefusesAHeaderThatNoReaderTakes) {
  const TemporaryFolder folder;
  const Metadata huge{{"k", std::string(kLargestHeader.count, 'x')}};
  const auto written = write(folder / "x", {}, huge);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::too_large);
  EXPECT_TRUE(folder.empty());
}

TEST(Safetensors, RefusesToReadWhatIsNotAFile) {
  const TemporaryFolder folder;
  EXPECT_TRUE(data_test::mentions(read(folder / "none").error().message, "No such file"));
  EXPECT_TRUE(data_test::mentions(read(folder.path()).error().message, "not a regular file"));
  data_test::put(folder / "empty", {});
  EXPECT_TRUE(data_test::mentions(read(folder / "empty").error().message, "has 0 bytes, too few"));
}

TEST(Safetensors, AFullDiskLeavesTheOldFile) {
  const file_test::Mount mount(file_test::Mount::Kind::memory);
  if (!mount.valid()) GTEST_SKIP() << file_test::Mount::why();
  SplitMix random(4);
  Made small, large;
  small.add("w", DType::u8, {100'000}, random);
  large.add("w", DType::u8, {3u << 20}, random);
  const std::string path = mount / "x";
  write(path, small.tensors()).value();
  try {
    write(path, large.tensors()).value();
    FAIL() << "3 MiB fitted into a file system of 1 MiB";
  } catch (const EnvironmentError& error) {
    EXPECT_TRUE(data_test::mentions(error.what(), path + " needs 3.00 MiB")) << error.what();
    EXPECT_TRUE(data_test::mentions(error.what(), "MiB short")) << error.what();
    EXPECT_EQ(error.place().path, path);
    EXPECT_EQ(error.place().cause, ENOSPC);
  }
  EXPECT_TRUE(same(*read(path).value().find("w"), small.tensors()[0]));
  const auto entries = std::filesystem::directory_iterator(mount.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

}  // namespace
}  // namespace terrace::safetensors
