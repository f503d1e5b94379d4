// The operands of each operation, by name and in order: what kernels index and docs/formats/graph.md shows.
#pragma once

#include <cstddef>
#include <string_view>

#include "terrace/operation.hpp"

namespace terrace {

/// Names separated by spaces. `name?` may be left out at the end, `name*` stands any number of times.
struct Signature {
  std::string_view inputs, outputs;
};

Signature signature_of(Operation operation);

/// Whether that many operands fit one side of a signature.
bool accepts(std::string_view side, std::size_t operands);

}  // namespace terrace
