// Lengths says how long the sequences of each step's batch are. It is a function of the seed and the step's
// number alone, so that a run that is resumed, or repeated under another plan, sees the same lengths. It is a
// plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "terrace/result.hpp"

namespace terrace {

class Lengths {
 public:
  /// Text such as `10-35` means lengths drawn between the two, both included, short ones more often than long
  /// ones. Any other text names a file with one length per line, which the steps use in order and cyclically.
  /// Fails with one sentence on text that is neither, on an empty file, and on lengths below 1 or above a
  /// million; throws EnvironmentError where the disk fails.
  static Result<Lengths> read(const std::string& text);

  std::int64_t of(std::uint64_t step, std::uint64_t seed) const;
  /// Returns the lengths from which buckets are chosen: those of the file, or a thousand draws and the
  /// longest.
  std::vector<std::int64_t> sample(std::uint64_t seed) const;

 private:
  std::int64_t least_ = 1, most_ = 1;  // the range of drawn lengths
  std::vector<std::int64_t> listed_;   // the lengths of a file; empty if they are drawn
};

}  // namespace terrace
