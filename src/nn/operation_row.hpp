// What the table of operations (operation.cpp) says of one.
#pragma once

#include <string_view>

#include "nn/signature.hpp"
#include "terrace/operation.hpp"

namespace terrace {

struct OperationRow {
  std::string_view name;
  Signature operands;
  OperationAttributes attributes;  ///< those it has, with their defaults
  double work =
      1;  ///< floating-point operations per element of the first input, roughly; products count theirs
};

const OperationRow& row_of(Operation operation);

}  // namespace terrace
