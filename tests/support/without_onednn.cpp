// SPDX-License-Identifier: Apache-2.0
// The one part of the library that differs in a build without oneDNN.
#undef TERRACE_HAS_CPU_KERNELS
#include "backends/processor.cpp"  // NOLINT(bugprone-suspicious-include)
