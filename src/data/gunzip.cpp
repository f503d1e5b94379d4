// SPDX-License-Identifier: Apache-2.0
#include "data/gunzip.hpp"

#include <zlib.h>

#include <new>

#include "base/check.hpp"

namespace terrace {

struct Gunzip::Stream {
  z_stream state{};
};

Gunzip::Gunzip(std::span<const std::byte> file) : stream_(std::make_unique<Stream>()) {
  check(file.size() <= kLargestFile.count, "the file is larger than Gunzip reads");
  z_stream& state = stream_->state;
  // zlib takes its input by a pointer to non-const, and does not write through it.
  state.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file.data()));
  state.avail_in = static_cast<uInt>(file.size());
  constexpr int kGzipOnly = 16;
  if (inflateInit2(&state, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
}

Gunzip::~Gunzip() { inflateEnd(&stream_->state); }

std::size_t Gunzip::read(std::span<std::uint8_t> out) {
  check(out.size() <= kLargestFile.count, "more is asked for at once than Gunzip reads");
  if (ending_ != Ending::none) return 0;
  z_stream& state = stream_->state;
  state.next_out = out.data();
  state.avail_out = static_cast<uInt>(out.size());
  while (state.avail_out > 0 && ending_ == Ending::none) {
    switch (inflate(&state, Z_NO_FLUSH)) {
      case Z_OK:
        break;
      case Z_STREAM_END:
        ending_ = state.avail_in == 0 ? Ending::clean : Ending::garbage;
        break;
      case Z_BUF_ERROR:
        ending_ = Ending::truncated;
        break;
      case Z_MEM_ERROR:
        throw std::bad_alloc();
      default:
        ending_ = Ending::corrupt;
    }
  }
  return out.size() - state.avail_out;
}

}  // namespace terrace
