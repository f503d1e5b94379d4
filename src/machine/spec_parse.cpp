#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>
#include <optional>

#include "machine/spec_fields.hpp"

namespace terrace {
namespace {

using namespace literals;

constexpr Bytes kMostCapacity = 1024_TiB * 1024;
constexpr unsigned kMostNode = 1023, kMostWeight = 1000;

Error bad(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

std::string_view example(TierKind kind) { return spec::find(kind)->example; }

// ---- The kind

// Returns the Levenshtein distance of two words.
unsigned edit_distance(std::string_view a, std::string_view b) {
  std::vector<unsigned> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0u);
  for (std::size_t i = 0; i < a.size(); ++i) {
    unsigned diagonal = row[0];
    row[0] = static_cast<unsigned>(i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const unsigned replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

Error unknown_kind(std::string_view word) {
  std::vector<std::string_view> names;
  for (const spec::KindInfo& kind : spec::kKinds) names.push_back(kind.name);
  // Long text is cut, because computing the distance takes quadratic time.
  const std::string_view start = word.substr(0, 32);
  const auto closest = *std::min_element(names.begin(), names.end(), [&](auto a, auto b) {
    return edit_distance(start, a) < edit_distance(start, b);
  });
  const std::string hint =
      edit_distance(start, closest) <= 2 ? fmt::format("; did you mean '{}'?", closest) : std::string{};
  return bad(fmt::format("'{}' is no kind of tier: the kinds are {}{}", word, fmt::join(names, ", "), hint));
}

Result<TierKind> read_kind(std::string_view word) {
  for (const spec::KindInfo& kind : spec::kKinds) {
    if (word == kind.name) return kind.kind;
  }
  return unknown_kind(word);
}

// ---- Where and how much

struct Parts {
  std::string_view where, size, options;
};

// Splits the text behind `colon` into size and options. The size ends at the first comma.
Parts split_at(std::string_view text, std::size_t colon) {
  const std::size_t comma = std::min(text.find(',', colon), text.size());
  return {text.substr(0, colon), text.substr(colon + 1, comma - colon - 1), text.substr(comma)};
}

// A path may hold colons and commas, so the size is the last `:SIZE` that parses.
std::optional<Parts> split_path(std::string_view text) {
  for (std::size_t colon = text.rfind(':'); colon != text.npos; colon = text.rfind(':', colon - 1)) {
    const Parts parts = split_at(text, colon);
    if (parse_bytes(parts.size)) return parts;
    if (colon == 0) break;
  }
  return std::nullopt;
}

Result<Parts> split(TierKind kind, std::string_view spec, std::string_view rest) {
  const auto missing = [&](std::string_view what) {
    return bad(fmt::format("'{}' has no {}: write it like {}", spec, what, example(kind)));
  };
  if (spec::where_of(kind) == spec::Where::path) {
    const auto parts = split_path(rest);
    if (!parts) return missing("size that can be read");
    if (parts->where.empty()) return missing("path");
    if (parts->where.find('\0') != rest.npos)
      return bad(fmt::format("the path of '{}' holds a zero byte", spec));
    return *parts;
  }
  if (spec::where_of(kind) == spec::Where::nodes) {
    const std::size_t colon = rest.find(':');
    if (colon == rest.npos) return missing("list of nodes followed by a size");
    const Parts parts = split_at(rest, colon);
    return parts.size.empty() ? Result<Parts>{missing("size")} : parts;
  }
  const std::size_t comma = std::min(rest.find(','), rest.size());
  const Parts parts{{}, rest.substr(0, comma), rest.substr(comma)};
  return parts.size.empty() ? Result<Parts>{missing("size")} : parts;
}

Result<Bytes> read_capacity(std::string_view text) {
  const auto capacity = parse_bytes(text);
  if (!capacity) return capacity;
  if (capacity->count == 0) return bad("a tier of zero bytes holds nothing: ask for at least 1MiB");
  if (*capacity > kMostCapacity) {
    return bad(
        fmt::format("a capacity of {} is more than the {} a tier can have", text, to_string(kMostCapacity)));
  }
  return capacity;
}

std::optional<unsigned> read_count(std::string_view text, unsigned least, unsigned most) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool fits =
      error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most;
  return fits ? std::optional{value} : std::nullopt;
}

Result<std::vector<NodeWeight>> read_nodes(std::string_view text) {
  std::vector<NodeWeight> nodes;
  for (std::string_view rest = text;;) {
    const std::size_t plus = std::min(rest.find('+'), rest.size());
    const std::string_view entry = rest.substr(0, plus);
    const std::size_t star = std::min(entry.find('*'), entry.size());
    const auto node = read_count(entry.substr(0, star), 0, kMostNode);
    const auto weight = star == entry.size() ? 1u : read_count(entry.substr(star + 1), 1, kMostWeight);
    if (!node || !weight) {
      return bad(
          fmt::format("'{}' in the node list '{}' is not NODE or NODE*WEIGHT with a node of 0 to {} and a "
                      "weight of 1 to {}: write it like 0*3+1",
                      entry, text, kMostNode, kMostWeight));
    }
    if (std::any_of(nodes.begin(), nodes.end(), [&](const NodeWeight& seen) { return seen.node == *node; })) {
      return bad(fmt::format("node {} stands twice in the node list '{}': give it one weight, as in 0*3+1",
                             *node, text));
    }
    nodes.push_back({*node, *weight});
    if (plus == rest.size()) return nodes;
    rest.remove_prefix(plus + 1);
  }
}

// ---- Options

Result<void> read_value(const spec::Option&, std::string_view, bool& flag) {
  flag = true;
  return {};
}

Result<void> read_value(const spec::Option& option, std::string_view text, unsigned& count) {
  const auto value = read_count(text, 1, option.most);
  if (!value) return bad(fmt::format("{}={} is not a count from 1 to {}", option.name, text, option.most));
  count = *value;
  return {};
}

Result<void> read_value(const spec::Option& option, std::string_view text, Bytes& size) {
  const auto value = parse_bytes(text);
  if (!value) return value.error();
  if (*value < 512_B || *value > 1_GiB || !std::has_single_bit(value->count)) {
    return bad(fmt::format("{}={} is not a power of two from 512B to 1GiB", option.name, text));
  }
  size = *value;
  return {};
}

Result<void> read_value(const spec::Option& option, std::string_view text, BytesPerSecond& rate) {
  const auto value = parse_rate(text);
  if (!value) return value.error();
  if (value->value < 1e3 || value->value > 1e15) {
    return bad(fmt::format("{}={} is not a rate from 1KB/s to 1000TB/s", option.name, text));
  }
  rate = *value;
  return {};
}

Result<void> read_value(const spec::Option& option, std::string_view text, Seconds& time) {
  const auto value = parse_time(text);
  if (!value) return value.error();
  if (*value > Seconds{1})
    return bad(fmt::format("{}={} is longer than the 1s that makes sense", option.name, text));
  time = *value;
  return {};
}

std::string options_of(TierKind kind) {
  std::vector<std::string_view> names;
  for (const spec::Option& option : spec::kOptions) {
    if (option.valid_for(kind)) names.push_back(option.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<const spec::Option*> find_option(TierKind kind, std::string_view name) {
  const auto option = std::find_if(spec::kOptions.begin(), spec::kOptions.end(),
                                   [&](const spec::Option& known) { return known.name == name; });
  if (option != spec::kOptions.end() && option->valid_for(kind)) return &*option;
  const std::string_view problem =
      option == spec::kOptions.end() ? "is no option of a tier" : "is not an option of this kind of tier";
  return bad(fmt::format("'{}' {}: {} takes {}", name, problem, to_string(kind), options_of(kind)));
}

Result<void> read_option(std::string_view text, TierSpec& spec) {
  const std::size_t equals = text.find('=');
  const auto option = find_option(spec.kind, text.substr(0, equals));
  if (!option) return option.error();
  const bool flag = std::holds_alternative<bool TierSpec::*>((*option)->field);
  if (flag && equals != text.npos)
    return bad(fmt::format("option '{}' takes no value, but '{}' gives one", (*option)->name, text));
  if (!flag && equals == text.npos) return bad(fmt::format("option '{0}' needs a value: {0}=...", text));
  const std::string_view value = flag ? std::string_view{} : text.substr(equals + 1);
  return std::visit([&](auto field) { return read_value(**option, value, spec.*field); }, (*option)->field);
}

// `text` is empty or starts with a comma.
Result<void> read_options(std::string_view text, TierSpec& spec) {
  std::vector<std::string_view> seen;
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view one = text.substr(0, std::min(text.find(','), text.size()));
    const std::string_view name = one.substr(0, one.find('='));
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      return bad(fmt::format("option '{}' is given twice: leave one of them out", name));
    }
    seen.push_back(name);
    if (const auto done = read_option(one, spec); !done) return done;
    text.remove_prefix(one.size());
  }
  return {};
}

Result<void> require_rates(std::string_view text, const TierSpec& spec) {
  if (spec.kind != TierKind::emulated) return {};
  for (const auto& [name, rate] : {std::pair{"read", spec.read_rate}, std::pair{"write", spec.write_rate}}) {
    if (rate.value == 0) {
      return bad(fmt::format("'{}' declares no {} rate: write it like {}", text, name, example(spec.kind)));
    }
  }
  return {};
}

}  // namespace

Result<TierSpec> parse_tier_spec(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto kind = read_kind(text.substr(0, colon));
  if (!kind) return kind.error();
  const auto parts = split(*kind, text, text.substr(std::min(colon + 1, text.size())));
  if (!parts) return parts.error();

  TierSpec spec;
  spec.kind = *kind;
  const auto capacity = read_capacity(parts->size);
  if (!capacity) return capacity.error();
  spec.capacity = *capacity;
  if (spec::where_of(*kind) == spec::Where::path) spec.path = parts->where;
  if (spec::where_of(*kind) == spec::Where::nodes) {
    auto nodes = read_nodes(parts->where);
    if (!nodes) return nodes.error();
    spec.nodes = std::move(*nodes);
  }
  if (const auto done = read_options(parts->options, spec); !done) return done.error();
  if (const auto done = require_rates(text, spec); !done) return done.error();
  return spec;
}

}  // namespace terrace
