// SPDX-License-Identifier: Apache-2.0
// The NVIDIA driver's own library, loaded when it is first needed: one program runs with a GPU and without.
//
// Everything that names a CUDA type stands behind TERRACE_HAS_CUDA, which the build sets where it finds
// cuda.h. The functions are the driver's oldest ones, so that any driver of kLeastCuda or newer has them all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

#ifdef TERRACE_HAS_CUDA
#include <cuda.h>
#endif

namespace terrace {

/// What the driver says of one GPU.
struct Gpu {
  unsigned number = 0;
  std::string name;
  Bytes memory;
};

/// Whether this build can use the driver at all.
bool built_with_cuda();

/// "13.0" of 13000.
std::string cuda_version_text(int version);

struct GpuList {
  std::string driver;  ///< the newest CUDA it knows
  std::vector<Gpu> gpus;
};
/// The GPUs that this process may use. Fails with one sentence: built without CUDA, no driver, a driver that
/// is too old, no GPU.
Result<GpuList> probe_cuda();

#ifdef TERRACE_HAS_CUDA

/// CUDA 11.2, which knows every function below.
constexpr int kLeastCuda = 11020;

// The functions used, with the name of each in the library: cuda.h renames some to their newer forms.
#define TERRACE_CUDA_FUNCTIONS(X)                            \
  X(Init, "cuInit")                                          \
  X(DriverGetVersion, "cuDriverGetVersion")                  \
  X(GetErrorName, "cuGetErrorName")                          \
  X(GetErrorString, "cuGetErrorString")                      \
  X(DeviceGetCount, "cuDeviceGetCount")                      \
  X(DeviceGet, "cuDeviceGet")                                \
  X(DeviceGetName, "cuDeviceGetName")                        \
  X(DeviceTotalMem, "cuDeviceTotalMem_v2")                   \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")      \
  X(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2") \
  X(CtxPushCurrent, "cuCtxPushCurrent_v2")                   \
  X(CtxPopCurrent, "cuCtxPopCurrent_v2")                     \
  X(MemGetInfo, "cuMemGetInfo_v2")                           \
  X(MemAlloc, "cuMemAlloc_v2")                               \
  X(MemFree, "cuMemFree_v2")                                 \
  X(MemHostRegister, "cuMemHostRegister_v2")                 \
  X(MemHostUnregister, "cuMemHostUnregister")                \
  X(PointerGetAttribute, "cuPointerGetAttribute")            \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2")                 \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2")                 \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2")                 \
  X(StreamCreate, "cuStreamCreate")                          \
  X(StreamDestroy, "cuStreamDestroy_v2")                     \
  X(StreamSynchronize, "cuStreamSynchronize")                \
  X(StreamWaitEvent, "cuStreamWaitEvent")                    \
  X(EventCreate, "cuEventCreate")                            \
  X(EventDestroy, "cuEventDestroy_v2")                       \
  X(EventRecord, "cuEventRecord")                            \
  X(EventQuery, "cuEventQuery")                              \
  X(EventSynchronize, "cuEventSynchronize")

struct CudaDriver {
#define TERRACE_CUDA_MEMBER(name, symbol) decltype(&::cu##name) name = nullptr;
  TERRACE_CUDA_FUNCTIONS(TERRACE_CUDA_MEMBER)
#undef TERRACE_CUDA_MEMBER
  int version = 0;

  /// "CUDA_ERROR_X: what that means".
  std::string text(CUresult result) const;
};

/// Loaded and initialised once; the same answer ever after.
Result<const CudaDriver*> cuda_driver();

#endif

}  // namespace terrace
