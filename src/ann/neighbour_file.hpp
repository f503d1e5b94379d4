// SPDX-License-Identifier: Apache-2.0
// Files of neighbours, from memory.
#pragma once

#include <string_view>

#include "terrace/ann.hpp"

namespace terrace::ann {

/// `name` stands for the file in sentences. Distances may be any float; ids any number.
Result<Neighbours> parse_neighbours(std::span<const std::byte> file, std::string_view name);

}  // namespace terrace::ann
