// Suggests known words for a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace terrace {

/// Returns at most three known words, closest first: those that have `word` as a prefix or are a prefix of
/// it, and those a few edits away. The result is empty where none is close.
std::vector<std::string_view> similar(std::string_view word, const std::vector<std::string_view>& known);

/// Joins words as `a, b and c`.
std::string enumerated(const std::vector<std::string_view>& words, std::string_view conjunction = "and");

}  // namespace terrace
