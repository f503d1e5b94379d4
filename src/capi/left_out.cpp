// SPDX-License-Identifier: Apache-2.0
// Parts of the library as they are in a build without oneDNN and CBC: beside a framework's own kernels there
// is no place for a second library of them, and the solver would bring its own BLAS.
#undef TERRACE_HAS_CPU_KERNELS
#undef TERRACE_HAS_CBC
#include "backends/processor.cpp"  // NOLINT(bugprone-suspicious-include)
#include "optim/cbc.cpp"           // NOLINT(bugprone-suspicious-include)
