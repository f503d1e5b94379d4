// A kernel ready to run: all that can be prepared is, and memory comes from outside as plain pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

/// What changes from step to step and is not a tensor.
struct StepContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  ///< counted from zero
  float learning_rate = 0.01F;
};

class RunnableKernel {
 public:
  RunnableKernel() = default;
  RunnableKernel(const RunnableKernel&) = delete;
  RunnableKernel& operator=(const RunnableKernel&) = delete;
  virtual ~RunnableKernel() = default;

  /// `operands`: the graph kernel's inputs, then its outputs, then its workspace if it has one. Allocates
  /// nothing. Not to be run twice at once.
  virtual void run(std::span<std::byte* const> operands, const StepContext& context) = 0;
};

}  // namespace terrace
