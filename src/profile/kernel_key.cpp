#include "profile/kernel_key.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace terrace {
namespace {

void add_attributes(std::string& key, const Backend& backend, const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    if (!backend.changes_time(name)) continue;
    std::visit([&, &text = name](
                   const auto& held) { fmt::format_to(std::back_inserter(key), " {}={}", text, held); },
               value);
  }
}

/// `f32[32, 64]abcd@...`, its bytes, and the number of an earlier operand that is the same memory.
void add_operand(std::string& key, const Graph& graph, const Operand& operand, std::vector<TensorId>& seen) {
  const Tensor& tensor = graph[operand.tensor];
  fmt::format_to(std::back_inserter(key), " {}{}{}:{}", to_string(tensor.type), to_string(operand.shape),
                 operand.layout, tensor.bytes.count);
  const auto earlier = std::find(seen.begin(), seen.end(), operand.tensor);
  if (earlier != seen.end()) fmt::format_to(std::back_inserter(key), "=#{}", earlier - seen.begin());
  seen.push_back(operand.tensor);
}

}  // namespace

std::string kernel_key(const Backend& backend, const Graph& graph, const Kernel& kernel) {
  std::string key = kernel.operation;
  add_attributes(key, backend, kernel.attributes);
  std::vector<TensorId> seen;
  key += " |";
  for (const Operand& operand : kernel.inputs) add_operand(key, graph, operand, seen);
  key += " >";
  for (const Operand& operand : kernel.outputs) add_operand(key, graph, operand, seen);
  if (kernel.workspace) key += fmt::format(" | workspace {}", graph[kernel.workspace].bytes.count);
  if (!kernel.variants.empty()) key += fmt::format(" | {}", kernel.variants.front().name);
  return key;
}

}  // namespace terrace
