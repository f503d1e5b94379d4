#include "terrace/operation.hpp"

#include <algorithm>
#include <unordered_map>

#include "nn/operation_table.hpp"

namespace terrace {
namespace {

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kOperations; ++i) {
    if (kOperationTable[i].operation != static_cast<Operation>(i)) return false;
  }
  return true;
}
static_assert(is_in_order(), "the table of operations has a row for each, in their order");

}  // namespace

std::string_view to_string(Operation operation) { return info_of(operation).name; }

std::optional<Operation> parse_operation(std::string_view name) {
  static const auto operations = [] {
    std::unordered_map<std::string_view, Operation> by_name;
    for (const OperationInfo& info : kOperationTable) by_name.emplace(info.name, info.operation);
    return by_name;
  }();
  const auto found = operations.find(name);
  return found == operations.end() ? std::nullopt : std::optional(found->second);
}

Operation operation_of(const Kernel& kernel) {
  return parse_operation(kernel.operation).value_or(Operation::custom);
}

bool accepts(std::string_view side, std::size_t operands) {
  const auto names = static_cast<std::size_t>(std::count(side.begin(), side.end(), ' ')) + 1;
  const auto optional = static_cast<std::size_t>(std::count(side.begin(), side.end(), '?'));
  const bool repeats = side.ends_with('*');
  const std::size_t least = names - optional - (repeats ? 1 : 0);
  return operands >= least && (repeats || operands <= names);
}

}  // namespace terrace
