// Huge pages are 2 MiB instead of 4 KiB, which makes page faults and address translation far cheaper.
#pragma once

#include <optional>
#include <string>

#include "tiers/mapping.hpp"

namespace terrace {

/// Maps memory from the pool that an administrator reserved (vm.nr_hugepages); returns nothing where it is
/// too small.
std::optional<Mapping> map_reserved_huge_pages(Bytes size);

/// Requests transparent huge pages. pre: the memory has not been touched
void ask_for_huge_pages(const Mapping& mapping);

/// Returns the tier's note on how much of the memory has huge pages, once it is populated. It is empty if all
/// of it has.
std::string huge_page_note(const Mapping& mapping);

}  // namespace terrace
