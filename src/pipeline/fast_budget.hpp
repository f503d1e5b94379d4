// How much fast memory a user gives: an amount such as `2GiB`, or a share of the graph's peak such as `20%`.
#pragma once

#include <string_view>

#include "terrace/bytes.hpp"

namespace terrace {

/// `peak` is what a percentage is of: the most bytes the graph has live at once. Fails with one sentence on
/// nothing, on percentages beyond 1000, and on what is neither.
Result<Bytes> parse_fast_budget(std::string_view text, Bytes peak);

}  // namespace terrace
