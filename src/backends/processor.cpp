// SPDX-License-Identifier: Apache-2.0
#include "backends/processor.hpp"

#include "backends/backend.hpp"
#ifdef TERRACE_HAS_CPU_KERNELS
#include "backends/cpu/backend.hpp"
#endif

namespace terrace {

Result<std::shared_ptr<const Backend>> processor_backend([[maybe_unused]] Variants variants) {
#ifdef TERRACE_HAS_CPU_KERNELS
  static const auto same_bits = std::make_shared<const cpu::CpuBackend>(Variants::same_bits),
                    any = std::make_shared<const cpu::CpuBackend>(Variants::any);
  return std::shared_ptr<const Backend>(variants == Variants::any ? any : same_bits);
#else
  return Error{ErrorCode::unsupported,
               "this build has no kernels of neural networks for the processor: build it where oneDNN is "
               "installed (libdnnl-dev), or plan for another machine"};
#endif
}

}  // namespace terrace
