// SPDX-License-Identifier: Apache-2.0
#include "manager/policies/policies.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace terrace {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Policy> (*make)();
};

// A new policy is one file in this folder and one line here.
constexpr std::array kPolicies{
    Entry{"none", [] { return make_cached_arrays({}); }},
    Entry{"L", [] { return make_cached_arrays({.local = true}); }},
    Entry{"LM", [] { return make_cached_arrays({.local = true, .eager = true}); }},
    Entry{"LMP", [] { return make_cached_arrays({.local = true, .eager = true, .prefetch = true}); }},
    Entry{"async-LMP", make_async_lmp},
    Entry{"first-touch", make_first_touch},
    Entry{"lru", make_lru},
    Entry{"all-slow", make_all_slow},
};

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(std::string_view name) {
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make();
  }
  return Error{ErrorCode::invalid_argument, fmt::format("no policy is called '{}': choose one of {}", name,
                                                        fmt::join(policy_names(), ", "))};
}

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kPolicies) names.push_back(entry.name);
  return names;
}

}  // namespace terrace
