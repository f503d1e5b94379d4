// SPDX-License-Identifier: Apache-2.0
// The tensors of a kernel's operands in the order in which plans and profiles count operands: inputs,
// outputs, workspace.
#pragma once

#include "terrace/graph.hpp"

namespace terrace {

/// Calls visit(tensor) for every operand. A tensor that is several operands is visited as often.
template <class Visit>
void for_each_operand_tensor(const Kernel& kernel, Visit visit) {
  for (const Operand& input : kernel.inputs) visit(input.tensor);
  for (const Operand& output : kernel.outputs) visit(output.tensor);
  if (kernel.workspace) visit(kernel.workspace);
}

}  // namespace terrace
