#include "base/check.hpp"
#include "profile/measure.hpp"
#include "terrace/program.hpp"

namespace terrace {

Result<Profile> measure(const Program& program, const Machine& machine, Bytes memory) {
  check(program.backend != nullptr, "a program was compiled");
  MeasureOptions options;
  options.threads = program.threads;
  options.budget = memory;
  options.backend = program.backend.get();
  return measure(program.graph, machine, options);
}

}  // namespace terrace
