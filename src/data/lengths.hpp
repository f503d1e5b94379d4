// Lengths: how long the sequences of each step's batch are. A function of the seed and the step's number
// alone, so that a run that is resumed, or repeated under another plan, sees the same. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "terrace/result.hpp"

namespace terrace {

class Lengths {
 public:
  /// `10-35`: drawn between the two, both included, short ones more often than long ones. Anything else is a
  /// file with one length in each line: those of the steps in their order, and from the first again at its
  /// end. Fails with one sentence on what is neither, on an empty file, and on lengths below 1 or above a
  /// million; throws EnvironmentError where the disk fails.
  static Result<Lengths> read(const std::string& text);

  std::int64_t of(std::uint64_t step, std::uint64_t seed) const;
  /// What buckets are chosen from: the file, or a thousand draws with the longest among them.
  std::vector<std::int64_t> sample(std::uint64_t seed) const;

 private:
  std::int64_t least_ = 1, most_ = 1;  // of what is drawn
  std::vector<std::int64_t> listed_;   // empty: they are drawn
};

}  // namespace terrace
