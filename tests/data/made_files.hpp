// SPDX-License-Identifier: Apache-2.0
// Small dataset files made by the test: their bytes, compressed, and on disk.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace terrace::data_test {

using ByteList = std::vector<std::uint8_t>;

inline ByteList gzip(const ByteList& bytes) {
  z_stream state{};
  constexpr int kGzip = 16;
  EXPECT_EQ(deflateInit2(&state, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  ByteList out(deflateBound(&state, bytes.size()) + 64);
  state.next_in = const_cast<Bytef*>(bytes.data());
  state.avail_in = static_cast<uInt>(bytes.size());
  state.next_out = out.data();
  state.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&state, Z_FINISH), Z_STREAM_END);
  const auto end = out.begin() + static_cast<std::ptrdiff_t>(state.total_out);
  deflateEnd(&state);
  return {out.begin(), end};
}

inline ByteList idx_header(const std::vector<std::uint32_t>& dims, std::uint8_t type = 0x08) {
  ByteList bytes{0, 0, type, static_cast<std::uint8_t>(dims.size())};
  for (const std::uint32_t dim : dims)
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(dim >> shift));
  return bytes;
}

inline ByteList idx(const std::vector<std::uint32_t>& dims, const ByteList& contents) {
  ByteList bytes = idx_header(dims);
  bytes.insert(bytes.end(), contents.begin(), contents.end());
  return bytes;
}

inline void put(const std::filesystem::path& path, const ByteList& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(out.flush());
}

inline bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace terrace::data_test
