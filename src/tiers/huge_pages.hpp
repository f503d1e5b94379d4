// Huge pages: 2 MiB instead of 4 KiB, so that memory is touched first and looked up later at far less cost.
#pragma once

#include <optional>
#include <string>

#include "tiers/mapping.hpp"

namespace terrace {

/// Memory from the pool an administrator reserved (vm.nr_hugepages), or nothing where it is too small.
std::optional<Mapping> map_reserved_huge_pages(Bytes size);

/// Asks for transparent huge pages. pre: the memory has not been touched.
void ask_for_huge_pages(const Mapping& mapping);

/// What became of the asking once the memory is populated, for the tier's note. Empty if all was granted.
std::string huge_page_note(const Mapping& mapping);

}  // namespace terrace
