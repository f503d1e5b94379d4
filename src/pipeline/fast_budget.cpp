#include "pipeline/fast_budget.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

namespace terrace {
namespace {

constexpr double kMostPercent = 1000;

std::optional<Bytes> share_of(std::string_view percent, Bytes peak) {
  double number = 0;
  const auto [end, error] = std::from_chars(percent.data(), percent.data() + percent.size(), number);
  if (error != std::errc{} || end != percent.data() + percent.size()) return std::nullopt;
  if (!std::isfinite(number) || number <= 0 || number > kMostPercent) return std::nullopt;
  return Bytes{static_cast<std::uint64_t>(static_cast<double>(peak.count) * number / 100)};
}

std::optional<Bytes> amount_of(std::string_view text) {
  const auto amount = parse_bytes(text);
  return amount ? std::optional(*amount) : std::nullopt;
}

}  // namespace

Result<Bytes> parse_fast_budget(std::string_view text, Bytes peak) {
  const auto bytes = text.ends_with('%') ? share_of(text.substr(0, text.size() - 1), peak) : amount_of(text);
  if (bytes && *bytes > Bytes{0}) return *bytes;
  return Error{ErrorCode::invalid_argument,
               fmt::format("'{}' is no amount of fast memory: give one such as 2GiB, or a percentage of the "
                           "graph's peak above 0 and up to {}, such as 20%",
                           text, kMostPercent)};
}

}  // namespace terrace
