#include "nn/models/sequence.hpp"

#include "nn/models/model.hpp"

namespace terrace {

std::optional<std::size_t> sequence_axis(std::string_view model) {
  for (const zoo::Model& each : zoo::table()) {
    if (each.info.name != model) continue;
    const auto* language = std::get_if<zoo::LanguageModel>(&each.kind);
    if (language == nullptr) return std::nullopt;
    return language->order == zoo::LanguageModel::Order::time_first ? 0 : 1;
  }
  return std::nullopt;
}

}  // namespace terrace
