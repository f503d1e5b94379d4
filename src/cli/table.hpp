// SPDX-License-Identifier: Apache-2.0
// A table on standard output: columns as wide as their widest cell, words to the left, numbers to the right.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace terrace::cli {

class Table {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    rows_.push_back(std::move(titles));
  }

  /// pre: one cell per column
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  void print() const {
    for (const auto& row : rows_) fmt::print("{}\n", line(row));
  }

 private:
  std::string line(const std::vector<std::string>& cells) const {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) text += "  ";
      text += columns_[i].align == Align::right ? fmt::format("{:>{}}", cells[i], width(i))
                                                : fmt::format("{:<{}}", cells[i], width(i));
    }
    // Nothing follows the last word of a line.
    return text.erase(text.find_last_not_of(' ') + 1);
  }

  std::size_t width(std::size_t column) const {
    std::size_t widest = 0;
    for (const auto& row : rows_) widest = std::max(widest, row[column].size());
    return widest;
  }

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace terrace::cli
