#include "data/lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/input_file.hpp"
#include "base/random.hpp"

namespace terrace {
namespace {

constexpr std::int64_t kLongest = 1'000'000;
constexpr std::uint64_t kDraws = 1000;

Error wrong(std::string sentence) { return {ErrorCode::invalid_argument, std::move(sentence)}; }

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_length(std::int64_t value) { return value >= 1 && value <= kLongest; }

/// Splits text of the form digits, dash, digits; a file of such a name cannot be given.
std::optional<std::pair<std::string_view, std::string_view>> ends_of(std::string_view text) {
  const auto dash = text.find('-');
  if (dash == 0 || dash == std::string_view::npos || dash + 1 == text.size()) return std::nullopt;
  const auto first = text.substr(0, dash), last = text.substr(dash + 1);
  const auto is_number = [](std::string_view part) {
    return part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!is_number(first) || !is_number(last)) return std::nullopt;
  return std::pair(first, last);
}

Result<std::vector<std::int64_t>> read_lines(const std::string& path) {
  const auto file = InputFile::open(path);
  if (!file) {
    return wrong(
        fmt::format("'{}' gives no lengths: write the shortest and the longest as 10-35, or name a "
                    "file with one length in each line ({})",
                    path, file.error().message));
  }
  const auto bytes = file->contents();
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::int64_t> lengths;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const auto length = number(rest.substr(0, end));
    if (!length || !is_length(*length)) {
      return wrong(fmt::format("line {} of {} is no length: give a whole number from 1 to {} in each line",
                               lengths.size() + 1, path, kLongest));
    }
    lengths.push_back(*length);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (lengths.empty()) return wrong(fmt::format("{} is empty: give one length in each line", path));
  return lengths;
}

}  // namespace

Result<Lengths> Lengths::read(const std::string& text) {
  Lengths lengths;
  if (const auto ends = ends_of(text)) {
    const auto least = number(ends->first), most = number(ends->second);
    if (!least || !most || !is_length(*least) || !is_length(*most) || *least > *most) {
      return wrong(
          fmt::format("'{}' gives no lengths: the first is the shortest and the second the longest, "
                      "from 1 to {}, as in 10-35",
                      text, kLongest));
    }
    lengths.least_ = *least;
    lengths.most_ = *most;
    return lengths;
  }
  auto listed = read_lines(text);
  if (!listed) return listed.error();
  lengths.listed_ = *std::move(listed);
  return lengths;
}

std::int64_t Lengths::of(std::uint64_t step, std::uint64_t seed) const {
  if (!listed_.empty()) return listed_[step % listed_.size()];
  SplitMix of_seed(seed);
  SplitMix random(of_seed.next() ^ step);
  const auto span = static_cast<std::uint64_t>(most_ - least_ + 1);
  // The smaller of two draws is half as likely in the middle as at the short end, and almost never the
  // longest.
  return least_ + static_cast<std::int64_t>(std::min(random.below(span), random.below(span)));
}

std::vector<std::int64_t> Lengths::sample(std::uint64_t seed) const {
  if (!listed_.empty()) return listed_;
  std::vector<std::int64_t> drawn{most_};
  for (std::uint64_t step = 0; step < kDraws; ++step) drawn.push_back(of(step, seed));
  return drawn;
}

}  // namespace terrace
