// The two ways of `terrace profile`: where a step's time goes, and what its tensors are like.
#pragma once

#include <cstdint>
#include <string>

#include "cli/model_choice.hpp"

namespace terrace::cli {

struct ProfileRequest : ModelChoice {
  bool kernels = false;
  std::int64_t steps = 3;
  unsigned threads = 0;
  std::size_t top = 0;
  std::string json;
  std::string plot;  ///< a file for a drawing; empty: none
};

/// Lifetimes, sizes and accesses of tensors, how pages share them, and what pages of their own take (000
/// section 3.2).
void profile_tensors(const ProfileRequest& request);

}  // namespace terrace::cli
