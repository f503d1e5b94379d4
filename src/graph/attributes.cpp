// SPDX-License-Identifier: Apache-2.0
#include "terrace/attributes.hpp"

#include <algorithm>
#include <utility>

namespace terrace {
namespace {

template <class List>
auto first_from(List& sorted, std::string_view name) {
  // Clang 14 does not find the operator < of strings in a template behind precompiled headers.
  return std::lower_bound(
      sorted.begin(), sorted.end(), name,
      [](const Attribute& one, std::string_view other) { return one.name.compare(other) < 0; });
}

}  // namespace

Attributes::Attributes(std::initializer_list<Attribute> attributes) {
  sorted_.reserve(attributes.size());
  for (const Attribute& attribute : attributes) set(attribute.name, attribute.value);
}

const AttributeValue* Attributes::find(std::string_view name) const {
  const auto found = first_from(sorted_, name);
  return found != sorted_.end() && found->name == name ? &found->value : nullptr;
}

void Attributes::set(std::string_view name, AttributeValue value) {
  const auto found = first_from(sorted_, name);
  if (found != sorted_.end() && found->name == name) {
    found->value = std::move(value);
  } else {
    sorted_.insert(found, {std::string(name), std::move(value)});
  }
}

}  // namespace terrace
