#include "base/similar.hpp"

#include <algorithm>
#include <numeric>

namespace terrace {
namespace {

constexpr std::size_t kMost = 3;

/// Returns the Levenshtein distance, computed one row of the table at a time.
std::size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char letter : from) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (letter == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// A prefix of a longer name counts as one edit.
std::size_t distance(std::string_view word, std::string_view known) {
  const bool begins = known.starts_with(word) || word.starts_with(known);
  return !word.empty() && begins ? 1 : edits(word, known);
}

}  // namespace

std::vector<std::string_view> similar(std::string_view word, const std::vector<std::string_view>& known) {
  // With more edits than this, unrelated words would match.
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::vector<std::pair<std::size_t, std::string_view>> close;
  for (const std::string_view candidate : known) {
    if (const std::size_t away = distance(word, candidate); away <= limit)
      close.emplace_back(away, candidate);
  }
  std::stable_sort(close.begin(), close.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (close.size() > kMost) close.resize(kMost);
  std::vector<std::string_view> words;
  for (const auto& [away, candidate] : close) words.push_back(candidate);
  return words;
}

std::string enumerated(const std::vector<std::string_view>& words, std::string_view conjunction) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 < words.size() ? ", " : " " + std::string(conjunction) + " ";
    text += words[i];
  }
  return text;
}

}  // namespace terrace
