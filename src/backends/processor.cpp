#include "backends/processor.hpp"

#include "backends/backend.hpp"
#ifdef TERRACE_HAS_CPU_KERNELS
#include "backends/cpu/backend.hpp"
#endif

namespace terrace {

Result<std::shared_ptr<const Backend>> processor_backend() {
#ifdef TERRACE_HAS_CPU_KERNELS
  static const auto backend = std::make_shared<const cpu::CpuBackend>();
  return std::shared_ptr<const Backend>(backend);
#else
  return Error{ErrorCode::unsupported,
               "this build has no kernels of neural networks for the processor: build it where oneDNN is "
               "installed (libdnnl-dev), or plan for another machine"};
#endif
}

}  // namespace terrace
