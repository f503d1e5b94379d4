// What fixes how a kernel computes, as names and values. A graph carries attributes without understanding
// them: the kernel's operation gives them their meaning (for neural networks: operation.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace terrace {

using AttributeValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

struct Attribute {
  std::string name;
  AttributeValue value;
  bool operator==(const Attribute&) const = default;
};

/// Each name once, in the order of names: two lists with the same attributes are equal.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<Attribute> attributes);

  /// The value of that name, or null.
  const AttributeValue* find(std::string_view name) const;
  /// Takes the place of a value of the same name.
  void set(std::string_view name, AttributeValue value);

  bool empty() const { return sorted_.empty(); }
  std::size_t size() const { return sorted_.size(); }
  auto begin() const { return sorted_.begin(); }
  auto end() const { return sorted_.end(); }
  bool operator==(const Attributes&) const = default;

 private:
  std::vector<Attribute> sorted_;
};

}  // namespace terrace
