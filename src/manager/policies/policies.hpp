// What every policy file needs, and the factory functions that the table in policies.cpp lists.
#pragma once

#include <memory>

#include "terrace/recency_policy.hpp"

namespace terrace {

/// The optimizations L, M and P of 003 section IV.
struct CachedArraysMode {
  bool local = false, eager = false, prefetch = false;
};

std::unique_ptr<Policy> make_cached_arrays(CachedArraysMode mode);
std::unique_ptr<Policy> make_async_lmp();
std::unique_ptr<Policy> make_first_touch();
std::unique_ptr<Policy> make_lru();
std::unique_ptr<Policy> make_all_slow();

}  // namespace terrace
