// SPDX-License-Identifier: Apache-2.0
// What `terrace profile MODEL` found, and the ways to show it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/profile.hpp"
#include "report/sharing.hpp"
#include "report/tensors.hpp"

namespace terrace::cli {

struct TensorProfile {
  std::vector<TensorFacts> facts;
  unsigned threads = 1;
  std::string not_counted;                ///< why accesses are as the graph says; empty: they were counted
  std::size_t operands = 0, watched = 0;  ///< of all kernels; those that were counted
  std::optional<Seconds> step, counted_step;
  Sharing as_allocated, grouped;
  Footprint all, small;
};

void print(const ProfileRequest& request, const TensorProfile& profile);
nlohmann::json to_json(const ProfileRequest& request, const TensorProfile& profile);
/// As an SVG.
std::string drawing(const ProfileRequest& request, const TensorProfile& profile);

}  // namespace terrace::cli
