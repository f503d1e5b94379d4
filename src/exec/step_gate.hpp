// StepGate: somebody who may hold a step back before an instruction, because it still reads what that
// instruction would change. A checkpoint that is written behind a step is one.
#pragma once

#include <cstdint>

namespace terrace {

class StepGate {
 public:
  StepGate() = default;
  StepGate(const StepGate&) = delete;
  StepGate& operator=(const StepGate&) = delete;
  virtual ~StepGate() = default;

  /// Returns when the instruction may be carried out. A step asks in the order of its instructions.
  virtual void wait_before(std::uint32_t instruction) = 0;
};

}  // namespace terrace
