// SPDX-License-Identifier: Apache-2.0
#include "base/cuda_driver.hpp"

#include <fmt/format.h>

#ifdef TERRACE_HAS_CUDA
#include <dlfcn.h>
#endif

namespace terrace {

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

#ifdef TERRACE_HAS_CUDA
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

Error unsupported(std::string message) { return {ErrorCode::unsupported, std::move(message)}; }

Error refused(const CudaDriver& driver, CUresult result) {
  switch (result) {
    case CUDA_ERROR_NO_DEVICE:
      return unsupported(
          "the NVIDIA driver finds no GPU: see nvidia-smi, CUDA_VISIBLE_DEVICES, and in a container "
          "--gpus");
    case CUDA_ERROR_STUB_LIBRARY:
      return unsupported(
          "the toolkit's stub was loaded in place of the NVIDIA driver: take its folder out of "
          "LD_LIBRARY_PATH");
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return unsupported(
          fmt::format("the NVIDIA driver and its library do not match ({}): install both of one version and "
                      "restart the computer",
                      driver.text(result)));
    default:
      return unsupported(
          fmt::format("the NVIDIA driver does not start ({}): see nvidia-smi", driver.text(result)));
  }
}

Result<CudaDriver> load() {
  // Never closed: the driver has threads of its own.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return unsupported(fmt::format("no NVIDIA driver here ({}): install it to use a GPU",
                                   why != nullptr ? why : "its library cannot be loaded"));
  }
  CudaDriver driver;
  const char* missing = nullptr;
#define TERRACE_CUDA_LOAD(name, symbol)                                          \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, symbol)); \
  if (driver.name == nullptr && missing == nullptr) missing = symbol;
  TERRACE_CUDA_FUNCTIONS(TERRACE_CUDA_LOAD)
#undef TERRACE_CUDA_LOAD
#define TERRACE_CUDA_LOAD(name, symbol) \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, symbol));
  TERRACE_CUDA_NEWER_FUNCTIONS(TERRACE_CUDA_LOAD)
#undef TERRACE_CUDA_LOAD
  if (driver.DriverGetVersion != nullptr) driver.DriverGetVersion(&driver.version);
  if (missing != nullptr || driver.version < kLeastCuda) {
    return unsupported(
        fmt::format("the NVIDIA driver is too old: it knows CUDA {}, and {} or newer is needed; update it",
                    cuda_version_text(driver.version), cuda_version_text(kLeastCuda)));
  }
  if (const CUresult result = driver.Init(0); result != CUDA_SUCCESS) return refused(driver, result);
  return driver;
}

}  // namespace

bool built_with_cuda() { return true; }

std::string CudaDriver::text(CUresult result) const {
  const char *name = nullptr, *meaning = nullptr;
  if (GetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return fmt::format("CUDA error {}", static_cast<int>(result));
  }
  GetErrorString(result, &meaning);
  return fmt::format("{}: {}", name, meaning != nullptr ? meaning : "no description");
}

Result<const CudaDriver*> cuda_driver() {
  static const Result<CudaDriver> driver = load();
  if (!driver) return driver.error();
  return &*driver;
}

// The driver says so in one attribute for both widths of numbers, since the second form of these functions.
bool waits_for_flags(const CudaDriver& driver, CUdevice device) {
  int offered = 0;
  return driver.StreamWaitValue32 != nullptr && driver.StreamWriteValue32 != nullptr &&
         driver.DeviceGetAttribute(&offered, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device) ==
             CUDA_SUCCESS &&
         offered != 0;
}

Result<GpuList> probe_cuda() {
  const auto loaded = cuda_driver();
  if (!loaded) return loaded.error();
  const CudaDriver& driver = **loaded;
  int count = 0;
  if (const CUresult result = driver.DeviceGetCount(&count); result != CUDA_SUCCESS || count == 0) {
    return refused(driver, result != CUDA_SUCCESS ? result : CUDA_ERROR_NO_DEVICE);
  }
  GpuList list{cuda_version_text(driver.version), {}};
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    std::size_t bytes = 0;
    char name[256] = "unnamed";
    driver.DeviceGet(&device, i);
    driver.DeviceGetName(name, sizeof name, device);
    driver.DeviceTotalMem(&bytes, device);
    list.gpus.push_back({static_cast<unsigned>(i), name, {bytes}, waits_for_flags(driver, device)});
  }
  return list;
}

#else

bool built_with_cuda() { return false; }

Result<GpuList> probe_cuda() {
  return Error{ErrorCode::unsupported,
               "built without CUDA: install the CUDA toolkit and build again with TERRACE_CUDA=ON"};
}

#endif

}  // namespace terrace
