// SPDX-License-Identifier: Apache-2.0
#include "ann/npy_header.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

namespace terrace::ann {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;

Error refuse(const std::string& reason) { return {ErrorCode::invalid_argument, reason}; }

/// Takes the dictionary apart. Each take_ function moves on only where it succeeds.
class Text {
 public:
  explicit Text(std::string_view text) : rest_(text) {}

  bool take(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool take_quoted(std::string_view& word) {
    skip_blanks();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == rest_.npos) return false;
    word = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool take_number(std::uint64_t& number) {
    skip_blanks();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : text_(text) {}

  Result<Matrix> parse() {
    if (!text_.take("{")) return refuse("has a header that is no dictionary");
    while (!text_.take("}")) {
      std::string_view key;
      if (!text_.take_quoted(key) || !text_.take(":")) return refuse("has a header that is no dictionary");
      if (const auto good = value_of(key); !good) return good.error();
      if (!text_.take(",") && !text_.take("}")) return refuse("has a header that is no dictionary");
      if (seen_ == 3) break;
    }
    text_.take("}");
    if (seen_ != 3 || !text_.at_end())
      return refuse("has a header without descr, fortran_order and shape alone");
    return matrix_;
  }

 private:
  Result<void> value_of(std::string_view key) {
    ++seen_;
    if (key == "descr") return descr();
    if (key == "fortran_order") {
      if (text_.take("False")) return {};
      return refuse("is in Fortran's order, which is not read here: save numpy.ascontiguousarray of it");
    }
    if (key == "shape") return shape();
    return refuse("has a header with an unknown key");
  }

  Result<void> descr() {
    std::string_view type;
    if (!text_.take_quoted(type)) return refuse("has a header whose descr is no text");
    if (type != "<f4" && type != "|u1")
      return refuse("holds a type other than float32 and uint8: save its astype('float32')");
    matrix_.type = type == "<f4" ? ElementType::f32 : ElementType::u8;
    return {};
  }

  Result<void> shape() {
    if (text_.take("(") && text_.take_number(matrix_.rows) && text_.take(",") &&
        text_.take_number(matrix_.columns)) {
      text_.take(",");
      if (text_.take(")")) return {};
    }
    return refuse("does not have the two dimensions of rows of vectors");
  }

  Text text_;
  Matrix matrix_;
  int seen_ = 0;
};

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic) || text.size() < 10) return refuse("does not begin as an npy file does");
  // Version 1 has a length of two bytes, the later ones of four.
  const std::size_t digits = text[6] == 1 ? 2 : 4;
  if (text[6] < 1 || text[6] > 3 || text.size() < 8 + digits)
    return refuse("is of an unknown version of npy");
  std::uint32_t length = 0;
  std::memcpy(&length, text.data() + 8, digits);
  if (length > text.size() - 8 - digits) return refuse("ends within its header");
  const auto matrix = Dictionary(text.substr(8 + digits, length)).parse();
  if (!matrix) return matrix.error();
  return NpyHeader{*matrix, 8 + digits + length};
}

std::vector<std::byte> print_npy_header(const Matrix& matrix) {
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                  matrix.type == ElementType::f32 ? "<f4" : "|u1", matrix.rows, matrix.columns);
  text.resize((10 + text.size() + kAlignment) / kAlignment * kAlignment - 10, ' ');
  text.back() = '\n';
  std::string file(kMagic);
  file += {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  file += text;
  const auto bytes = std::as_bytes(std::span(file));
  return {bytes.begin(), bytes.end()};
}

}  // namespace terrace::ann
