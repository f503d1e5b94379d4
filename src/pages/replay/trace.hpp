// SPDX-License-Identifier: Apache-2.0
// An access trace says how often each block of a program's memory was read and written, window by window.
//
//   block    what the trace tells apart: 64 KiB where `terrace run --record` wrote it, 2 MiB in the built-in
//            workloads, which stand in for those of 002 Table 8.2
//   window   a piece of the program's work. Its accesses are fixed; how long it takes is for a replay to find
//            out
//
// A trace is read window by window and keeps nothing of the earlier ones.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace::pages {

struct Accesses {
  float reads = 0, writes = 0;
  float all() const { return reads + writes; }
};

struct TraceShape {
  std::string name;
  Bytes block;
  std::uint32_t blocks = 0, windows = 0;
  Bytes footprint() const { return {block.count * blocks}; }
};

class AccessTrace {
 public:
  virtual ~AccessTrace() = default;
  virtual const TraceShape& shape() const = 0;
  /// Fills in the accesses of one window to all blocks, which are numbered by first touch. Any window can be
  /// asked for at any time. pre: window < shape().windows, into.size() == shape().blocks
  virtual void window(std::uint32_t window, std::span<Accesses> into) const = 0;
  /// The blocks that the workload keeps hot, where that is known: for recall and precision.
  virtual const std::vector<bool>* hot_set() const { return nullptr; }
};

struct WorkloadInfo {
  std::string_view name, what;
};
std::vector<WorkloadInfo> trace_workloads();
/// One of the built-in workloads with so many windows; `size` replaces its footprint where it is not zero.
Result<std::unique_ptr<AccessTrace>> make_workload(std::string_view name, std::uint32_t windows,
                                                   Bytes size = {});

/// The same accesses told apart by larger blocks, each of them neighbours of the trace. It is hot where more
/// than half of it is. The trace outlives it. pre: `block` is a multiple of the trace's
std::unique_ptr<AccessTrace> in_larger_blocks(const AccessTrace& trace, Bytes block);

/// Reads the format of docs/formats/trace.md. The error names the line.
Result<std::unique_ptr<AccessTrace>> read_trace(std::istream& from, std::string name);

}  // namespace terrace::pages
