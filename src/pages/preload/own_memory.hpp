// SPDX-License-Identifier: Apache-2.0
// All memory of the library that `terrace run` loads into a program: one range of addresses that is never
// managed, so that whoever serves faults never causes one.
//
// Mappings (tiers/mapping.hpp) and operator new of this library take from it. Nothing of it is given back to
// the system but pages of mappings that end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::pages {

/// Reserves the range. Called once, before anything else of the library runs. Returns 0 or an errno.
int reserve_own_memory(std::size_t bytes);
/// In a forked child no other thread is left that could be in the middle of an allocation.
void own_memory_in_child();
/// The range, [start, end).
std::uintptr_t own_start();
std::uintptr_t own_end();

}  // namespace terrace::pages
