#include "terrace/bytes.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace terrace {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kSizeUnits{Unit{"TiB", 0x1p40}, Unit{"TB", 1e12},    Unit{"GiB", 0x1p30},
                                Unit{"GB", 1e9},     Unit{"MiB", 0x1p20}, Unit{"MB", 1e6},
                                Unit{"KiB", 0x1p10}, Unit{"KB", 1e3},     Unit{"B", 1}};
constexpr std::array kTimeUnits{Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};

struct Quantity {
  double number;
  std::string_view unit;
};

std::optional<Quantity> split(std::string_view text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !(number >= 0)) return std::nullopt;
  return Quantity{number, text.substr(static_cast<std::size_t>(end - text.data()))};
}

template <std::size_t N>
std::optional<double> factor_of(const std::array<Unit, N>& units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.factor;
  }
  return std::nullopt;
}

Error misread(std::string_view text, std::string_view what, std::string_view example) {
  return {ErrorCode::invalid_argument, fmt::format("'{}' is not {}: write it like {}", text, what, example)};
}

// Returns the shortest text, over all units, that parses as exactly this value.
template <std::size_t N>
std::string shortest(double value, const std::array<Unit, N>& units) {
  std::string best;
  for (const Unit& unit : units) {
    std::array<char, 400> digits;
    const auto [end, error] =
        std::to_chars(digits.begin(), digits.end(), value / unit.factor, std::chars_format::fixed);
    std::string text(digits.begin(), end);
    const auto back = split(text);
    if (error != std::errc{} || !back || back->number * unit.factor != value) continue;
    text += unit.name;
    if (best.empty() || text.size() < best.size()) best = text;
  }
  return best;
}

}  // namespace

std::string to_string(Bytes amount) {
  if (amount.count == 0) return "0B";
  for (const Unit& unit : kSizeUnits) {
    const auto factor = static_cast<std::uint64_t>(unit.factor);
    if (amount.count % factor == 0) return fmt::format("{}{}", amount.count / factor, unit.name);
  }
  return {};  // unreachable, because every amount is a multiple of 1 B
}

std::string to_string(BytesPerSecond rate) { return shortest(rate.value, kSizeUnits) + "/s"; }

std::string to_string(Seconds time) { return shortest(time.count(), kTimeUnits); }

std::string readable(Bytes amount) {
  for (const Unit& unit :
       {Unit{"TiB", 0x1p40}, Unit{"GiB", 0x1p30}, Unit{"MiB", 0x1p20}, Unit{"KiB", 0x1p10}}) {
    const double number = static_cast<double>(amount.count) / unit.factor;
    if (number >= 1) return fmt::format("{:.2f} {}", number, unit.name);
  }
  return fmt::format("{} B", amount.count);
}

std::string readable(BytesPerSecond rate) { return fmt::format("{:.2f} GB/s", rate.value / 1e9); }

Result<Bytes> parse_bytes(std::string_view text) {
  const auto fail = [&] { return misread(text, "an amount of memory", "8GiB, 512MiB or 200GB"); };
  // Whole numbers are parsed exactly; only fractions go through floating point.
  std::uint64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error == std::errc{} && !rest.starts_with('.')) {
    const auto factor = rest.empty() ? 1.0 : factor_of(kSizeUnits, rest);
    if (!factor) return fail();
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(whole, static_cast<std::uint64_t>(*factor), &product)) return fail();
    return Bytes{product};
  }
  const auto quantity = split(text);
  const auto factor = quantity ? factor_of(kSizeUnits, quantity->unit) : std::nullopt;
  if (!factor) return fail();
  const double value = quantity->number * *factor;
  if (value != std::floor(value) || value >= 0x1p63) return fail();
  return Bytes{static_cast<std::uint64_t>(value)};
}

Result<BytesPerSecond> parse_rate(std::string_view text) {
  const auto fail = [&] { return misread(text, "a rate", "39GB/s"); };
  if (!text.ends_with("/s")) return fail();
  const auto quantity = split(text.substr(0, text.size() - 2));
  const auto factor = quantity ? factor_of(kSizeUnits, quantity->unit) : std::nullopt;
  if (!factor || !std::isfinite(quantity->number * *factor)) return fail();
  return BytesPerSecond{quantity->number * *factor};
}

Result<Seconds> parse_time(std::string_view text) {
  const auto quantity = split(text);
  const auto factor = quantity ? factor_of(kTimeUnits, quantity->unit) : std::nullopt;
  if (!factor || !std::isfinite(quantity->number)) return misread(text, "a time", "304ns, 10us or 2ms");
  return Seconds{quantity->number * *factor};
}

}  // namespace terrace
