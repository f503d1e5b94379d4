// Which known words someone may have meant by one that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace terrace {

/// The words closest to `word`, closest first, at most three: those it begins or is begun by, and those a few
/// edits away. Empty where none is close.
std::vector<std::string_view> similar(std::string_view word, const std::vector<std::string_view>& known);

/// `a, b and c`
std::string enumerated(const std::vector<std::string_view>& words, std::string_view conjunction = "and");

}  // namespace terrace
