// SPDX-License-Identifier: Apache-2.0
#include "record/json_parts.hpp"

namespace terrace {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<std::vector<JsonPart>> run() {
    std::vector<JsonPart> parts;
    if (!take('{')) return std::nullopt;
    if (!take('}')) {
      do {
        const auto key = string();
        if (!key || !take(':')) return std::nullopt;
        const auto value = any_value();
        if (!value) return std::nullopt;
        parts.push_back({key->substr(1, key->size() - 2), *value});
      } while (take(','));
      if (!take('}')) return std::nullopt;
    }
    skip_space();
    return at_ == text_.size() ? std::optional(std::move(parts)) : std::nullopt;
  }

 private:
  bool is_space() const { return std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos; }
  void skip_space() {
    while (at_ < text_.size() && is_space()) ++at_;
  }

  bool take(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  /// Reads a string with its quotes.
  std::optional<std::string_view> string() {
    skip_space();
    const std::size_t begin = at_;
    if (at_ == text_.size() || text_[at_] != '"') return std::nullopt;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        return text_.substr(begin, ++at_ - begin);
      }
    }
    return std::nullopt;
  }

  /// Brackets are counted and not told apart: readers of the value see which is which.
  std::optional<std::string_view> nested() {
    const std::size_t begin = at_;
    std::size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!string()) return std::nullopt;
        continue;
      }
      ++at_;
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) return text_.substr(begin, at_ - begin);
    }
    return std::nullopt;
  }

  std::optional<std::string_view> any_value() {
    skip_space();
    if (at_ == text_.size()) return std::nullopt;
    if (text_[at_] == '"') return string();
    if (text_[at_] == '{' || text_[at_] == '[') return nested();
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_space() && text_[at_] != ',' && text_[at_] != '}') ++at_;
    return at_ > begin ? std::optional(text_.substr(begin, at_ - begin)) : std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<JsonPart>> json_parts(std::string_view text) { return Scanner(text).run(); }

}  // namespace terrace
