#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/shortest_double.hpp"
#include "nn/operation_table.hpp"
#include "terrace/operation.hpp"

namespace terrace {
namespace {

AttributeValue plain(float value) { return shortest_double(value); }
AttributeValue plain(bool value) { return value; }
AttributeValue plain(std::int64_t value) { return value; }
AttributeValue plain(std::uint32_t value) { return static_cast<std::int64_t>(value); }
AttributeValue plain(const Window::Pair& pair) { return std::vector<std::int64_t>(pair.begin(), pair.end()); }

// Each returns what is wanted instead where the value cannot be meant, else null.
const char* take(const AttributeValue& from, float& to) {
  const auto* number = std::get_if<double>(&from);
  const auto* whole = std::get_if<std::int64_t>(&from);
  if (number == nullptr && whole == nullptr) return "a number";
  const double value = number != nullptr ? *number : static_cast<double>(*whole);
  if (!(std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max())))
    return "a number that a float can be";
  to = static_cast<float>(value);
  return nullptr;
}
const char* take(const AttributeValue& from, bool& to) {
  const auto* flag = std::get_if<bool>(&from);
  if (flag == nullptr) return "true or false";
  to = *flag;
  return nullptr;
}
const char* take(const AttributeValue& from, std::int64_t& to) {
  const auto* whole = std::get_if<std::int64_t>(&from);
  if (whole == nullptr || *whole < 0) return "a whole number not below zero";
  to = *whole;
  return nullptr;
}
const char* take(const AttributeValue& from, std::uint32_t& to) {
  const auto* whole = std::get_if<std::int64_t>(&from);
  if (whole == nullptr || *whole < 0 || *whole > std::numeric_limits<std::uint32_t>::max())
    return "a whole number of 32 bits";
  to = static_cast<std::uint32_t>(*whole);
  return nullptr;
}
const char* take(const AttributeValue& from, Window::Pair& to) {
  const auto* list = std::get_if<std::vector<std::int64_t>>(&from);
  if (list == nullptr || list->size() != 2 || (*list)[0] < 0 || (*list)[1] < 0)
    return "a pair of whole numbers not below zero, of height and width,";
  to = {(*list)[0], (*list)[1]};
  return nullptr;
}

Error wrong(const Kernel& kernel, const std::string& what) {
  return {ErrorCode::invalid_argument,
          fmt::format("{} {}", kernel.name.empty() ? "a kernel without a name" : kernel.name, what)};
}

template <class Struct>
Result<void> check_fields(const Kernel& kernel, Struct held) {
  std::vector<std::string_view> known;
  const char* wanted = nullptr;
  const char* where = nullptr;
  for_each_field(held, [&](const char* name, auto& value) {
    known.emplace_back(name);
    const AttributeValue* given = kernel.attributes.find(name);
    if (given == nullptr || wanted != nullptr) return;
    wanted = take(*given, value);
    where = name;
  });
  if (wanted != nullptr)
    return wrong(kernel, fmt::format("has an impossible {}: {} is wanted", where, wanted));
  for (const Attribute& attribute : kernel.attributes) {
    if (std::find(known.begin(), known.end(), attribute.name) != known.end()) continue;
    return wrong(kernel, fmt::format("has the attribute {}, which {} does not take: {}", attribute.name,
                                     kernel.operation,
                                     known.empty() ? std::string("it has none")
                                                   : fmt::format("there are {}", fmt::join(known, ", "))));
  }
  return {};
}

Result<void> check_operation(const Kernel& kernel) {
  const Operation operation = operation_of(kernel);
  if (operation == Operation::custom) return {};
  const OperationInfo& signature = info_of(operation);
  if (!accepts(signature.inputs, kernel.inputs.size())) {
    return wrong(kernel, fmt::format("has {} inputs, but {} reads ({})", kernel.inputs.size(),
                                     kernel.operation, signature.inputs));
  }
  if (!accepts(signature.outputs, kernel.outputs.size())) {
    return wrong(kernel, fmt::format("has {} outputs, but {} writes ({})", kernel.outputs.size(),
                                     kernel.operation, signature.outputs));
  }
  return std::visit([&](const auto& held) { return check_fields(kernel, held); },
                    info_of(operation).attributes);
}

}  // namespace

Attributes to_attributes(const OperationAttributes& attributes) {
  Attributes list;
  const auto add = [&](const char* name, const auto& value) { list.set(name, plain(value)); };
  std::visit([&](const auto& held) { for_each_field(held, add); }, attributes);
  return list;
}

template <class Struct>
Struct attributes_as(const Kernel& kernel) {
  Struct held;
  for_each_field(held, [&](const char* name, auto& value) {
    if (const AttributeValue* given = kernel.attributes.find(name)) take(*given, value);
  });
  return held;
}
template std::monostate attributes_as(const Kernel&);
template Window attributes_as(const Kernel&);
template NormAttributes attributes_as(const Kernel&);
template MatmulAttributes attributes_as(const Kernel&);
template SoftmaxAttributes attributes_as(const Kernel&);
template SlopeAttributes attributes_as(const Kernel&);
template GeluAttributes attributes_as(const Kernel&);
template AddAttributes attributes_as(const Kernel&);
template ConcatAttributes attributes_as(const Kernel&);
template HeadsAttributes attributes_as(const Kernel&);
template EmbeddingAttributes attributes_as(const Kernel&);
template DropoutAttributes attributes_as(const Kernel&);
template LossAttributes attributes_as(const Kernel&);
template OptimizerAttributes attributes_as(const Kernel&);

OperationAttributes attributes_of(const Kernel& kernel) {
  return std::visit(
      [&](const auto& held) -> OperationAttributes {
        return attributes_as<std::remove_cvref_t<decltype(held)>>(kernel);
      },
      info_of(operation_of(kernel)).attributes);
}

Result<void> check_operations(const Graph& graph) {
  for (const Kernel& kernel : graph.kernels) {
    if (auto valid = check_operation(kernel); !valid) return valid;
  }
  return {};
}

}  // namespace terrace
