// SPDX-License-Identifier: Apache-2.0
// A tier spec names a tier as users write it. It is plain data: nothing is opened or allocated.
//
//   tier   memory of one kind: where bytes can live
//   spec   the text by which a user names a tier: `KIND[:WHERE]:SIZE[,option...]`
//
// The kinds, with the options each takes:
//   dram:8GiB                                               anonymous memory
//       huge
//   numa:1:8GiB  numa:0*3+1:8GiB                            bound to nodes; here weighted 3 to 1 over 0 and 1
//       huge
//   dax:/mnt/pmem/terrace:64GiB  dax:/dev/dax0.0:64GiB      a mapped file or device
//       keep
//   file:/data/spill:200GiB                                 a disk
//       keep, block=4MiB, depth=32, pool (no io_uring), buffered (accept the page cache), read=1GB/s and
//       write=1GB/s (ask no more of it, which leaves more of the cores to kernels)
//   emulated:64GiB,read=39GB/s,write=13GB/s,latency=304ns   memory that behaves as slow as declared
//       huge
//   cuda:0:100GiB                                           memory of the GPU of that number
//   pinned:64GiB                                            host memory that a GPU reaches by itself
//   fake:1MiB                                               for tests: scripted faults
//       blocks (not addressable), block=512B, device (on a fake device)
// Every kind also takes threads=N, the number of threads that copy into the tier fastest when they do so at
// once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

enum class TierKind { dram, numa, dax, file, emulated, fake, cuda, pinned };

std::string_view to_string(TierKind kind);

/// One node of a `numa` tier, with its share of the pages.
struct NodeWeight {
  unsigned node = 0;
  unsigned weight = 1;
  bool operator==(const NodeWeight&) const = default;
};

/// What a user asked for. Reading the text it prints gives the same spec again.
struct TierSpec {
  TierKind kind = TierKind::dram;
  Bytes capacity;
  std::string path;               ///< dax and file
  std::vector<NodeWeight> nodes;  ///< numa
  BytesPerSecond read_rate;       ///< emulated: the bandwidth; file: an upper limit, 0 = no limit
  BytesPerSecond write_rate;      ///< as read_rate, for writes
  Seconds latency{0};             ///< emulated
  bool huge_pages = false;        ///< dram, numa, emulated
  bool keep = false;              ///< dax and file: leave the file behind
  bool force_pool = false;        ///< file: preadv/pwritev threads even where io_uring works
  bool buffered = false;          ///< file: go through the page cache where direct I/O is refused
  bool blocks = false;            ///< fake: behave as a block tier
  bool on_device = false;         ///< fake: behave as a tier on a device
  unsigned gpu = 0;               ///< cuda: the GPU's number
  Bytes block{0};                 ///< file: largest single request; fake: block size; 0 = the tier's default
  unsigned depth = 0;             ///< file: requests in flight; 0 = the tier's default
  unsigned threads = 0;           ///< copy threads writing here at once; 0 = the tier's default

  bool operator==(const TierSpec&) const = default;
};

/// Whether the tier is memory of a device, which the host cannot dereference.
inline bool lies_on_device(const TierSpec& spec) { return spec.kind == TierKind::cuda || spec.on_device; }

/// Fails with one sentence that names the offending part and what would be accepted.
Result<TierSpec> parse_tier_spec(std::string_view text);
std::string to_string(const TierSpec& spec);

/// Describes an opened tier. It is constant while the tier is open.
struct TierDescription {
  TierSpec spec;
  std::string name;         ///< the spec's text, which every message quotes
  Bytes capacity;           ///< usable bytes, at least what the spec asked for rounded down to `granularity`
  Bytes granularity{64};    ///< offsets and sizes of regions here are multiples of this; a power of two
  bool addressable = true;  ///< kernels of the processor may use bytes in place
  BytesPerSecond read_rate, write_rate;  ///< declared or measured; zero = unknown
  Seconds latency{0};
  unsigned write_threads = 1;  ///< the number of concurrent copying threads that is fastest
  std::string note;  ///< a remark for the user, such as "huge pages refused" or "mapped without MAP_SYNC"
};

/// The position of a tier in a manager or mover; 0 is the fastest.
struct TierId {
  std::uint32_t index = 0;
  constexpr auto operator<=>(const TierId&) const = default;
};

}  // namespace terrace
