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
  switch (kind) {
    case TierKind::dram:
      return "dram";
    case TierKind::numa:
      return "numa";
    case TierKind::dax:
      return "dax";
    case TierKind::file:
      return "file";
    case TierKind::emulated:
      return "emulated";
    case TierKind::fake:
      return "fake";
    case TierKind::cuda:
      return "cuda";
    case TierKind::pinned:
      return "pinned";
  }
  return "unknown";
}

std::string to_string(const TierSpec& spec) {
  std::string text{to_string(spec.kind)};
  if (spec::has_path(spec.kind)) text += ":" + spec.path;
  if (spec.kind == TierKind::numa) text += ":" + node_list(spec.nodes);
  if (spec.kind == TierKind::cuda) text += fmt::format(":{}", spec.gpu);
  text += ":" + to_string(spec.capacity);
  for (const spec::Option& option : spec::kOptions) {
    if (option.valid_for(spec.kind)) text += option_text(option, spec);
  }
  return text;
}

}  // namespace terrace
