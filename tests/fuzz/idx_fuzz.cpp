// SPDX-License-Identifier: Apache-2.0
// Whatever bytes are given as an IDX file, they are refused with a sentence or read to what they declare. The
// first byte chooses whether the rest is compressed here, for few random bytes are gzip with a right
// checksum.
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "data/idx.hpp"

namespace {

std::vector<std::uint8_t> gzip(const std::uint8_t* data, std::size_t size) {
  z_stream state{};
  if (deflateInit2(&state, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    std::abort();
  std::vector<std::uint8_t> out(deflateBound(&state, size) + 64);
  state.next_in = const_cast<Bytef*>(data);
  state.avail_in = static_cast<uInt>(size);
  state.next_out = out.data();
  state.avail_out = static_cast<uInt>(out.size());
  if (deflate(&state, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(out.size() - state.avail_out);
  deflateEnd(&state);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto file = data[0] % 2 == 0 ? gzip(data + 1, size - 1) : std::vector(data + 1, data + size);
  const auto idx = terrace::parse_idx(std::as_bytes(std::span(file)), "fuzz");
  if (!idx) {
    if (idx.error().message.empty()) std::abort();
    return 0;
  }
  std::uint64_t product = 1;
  for (const std::uint32_t dim : idx->dims) product *= dim;
  if (idx->dims.empty() || product != idx->bytes.size()) std::abort();
  return 0;
}
