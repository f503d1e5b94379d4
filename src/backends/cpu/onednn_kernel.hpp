// Runs a oneDNN primitive on memory that comes from outside.
#pragma once

#include <functional>

#include "backends/cpu/recipe.hpp"
#include "backends/kernel.hpp"

namespace terrace::cpu {

using Operands = std::span<std::byte* const>;

inline float* floats(Operands operands, std::size_t index) {
  return reinterpret_cast<float*>(operands[index]);
}
inline const std::int32_t* integers(Operands operands, std::size_t index) {
  return reinterpret_cast<const std::int32_t*>(operands[index]);
}

/// Where a primitive's argument is found among the operands of a kernel.
struct Slot {
  int argument = 0;
  Desc desc;
  std::size_t operand = 0;
  std::ptrdiff_t offset = 0;  ///< in bytes, into the operand
};

class Primitive {
 public:
  Primitive(const dnnl::primitive_desc_base& desc, const std::vector<Slot>& slots);
  void run(Operands operands);

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<Slot> slots_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;  ///< built once: a run allocates nothing
};

class OneDnnKernel : public RunnableKernel {
 public:
  using Extra = std::function<void(Operands)>;
  /// `before` and `after` do what the primitive leaves to its user.
  OneDnnKernel(const Kernel& kernel, const Recipe& recipe, Extra before = {}, Extra after = {});
  void run(Operands operands, const StepContext& context) override;

 private:
  Extra before_, after_;
  Primitive primitive_;
};

/// A kernel that is a function.
class FunctionKernel : public RunnableKernel {
 public:
  using Function = std::function<void(Operands, const StepContext&)>;
  explicit FunctionKernel(Function function) : function_(std::move(function)) {}
  void run(Operands operands, const StepContext& context) override { function_(operands, context); }

 private:
  Function function_;
};

/// Empty for operations that are not ours.
FunctionKernel::Function own_kernel(const Graph& graph, const Kernel& kernel);

}  // namespace terrace::cpu
