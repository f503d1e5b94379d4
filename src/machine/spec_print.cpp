#include <fmt/format.h>

#include "machine/spec_fields.hpp"

namespace terrace {
namespace {

std::string value_text(bool) { return {}; }
std::string value_text(unsigned value) { return fmt::format("={}", value); }
std::string value_text(auto value) { return "=" + to_string(value); }

std::string node_list(const std::vector<NodeWeight>& nodes) {
  std::string text;
  for (const NodeWeight& entry : nodes) {
    if (!text.empty()) text += '+';
    text +=
        entry.weight == 1 ? fmt::format("{}", entry.node) : fmt::format("{}*{}", entry.node, entry.weight);
  }
  return text;
}

// Options at their default are omitted, so that the text is canonical.
std::string option_text(const spec::Option& option, const TierSpec& spec) {
  return std::visit(
      [&](auto field) {
        const auto value = spec.*field;
        return value == decltype(value){} ? std::string{}
                                          : fmt::format(",{}{}", option.name, value_text(value));
      },
      option.field);
}

}  // namespace

std::string_view to_string(TierKind kind) {
  const spec::KindInfo* info = spec::find(kind);
  return info != nullptr ? info->name : "unknown";
}

std::string to_string(const TierSpec& spec) {
  std::string text{to_string(spec.kind)};
  if (spec::where_of(spec.kind) == spec::Where::path) text += ":" + spec.path;
  if (spec::where_of(spec.kind) == spec::Where::nodes) text += ":" + node_list(spec.nodes);
  text += ":" + to_string(spec.capacity);
  for (const spec::Option& option : spec::kOptions) {
    if (option.valid_for(spec.kind)) text += option_text(option, spec);
  }
  return text;
}

}  // namespace terrace
