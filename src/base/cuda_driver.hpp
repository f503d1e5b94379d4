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
  bool waits_for_flags = true;  ///< its queues wait for numbers in memory; otherwise the host has to
};

/// Returns whether this build can use the driver at all.
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
  X(PointerGetAttributes, "cuPointerGetAttributes")          \
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
  X(EventSynchronize, "cuEventSynchronize")                  \
  X(DeviceGetAttribute, "cuDeviceGetAttribute")              \
  X(MemHostAlloc, "cuMemHostAlloc")                          \
  X(MemFreeHost, "cuMemFreeHost")                            \
  X(MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2") \
  X(ModuleLoadData, "cuModuleLoadData")                      \
  X(ModuleUnload, "cuModuleUnload")                          \
  X(ModuleGetFunction, "cuModuleGetFunction")                \
  X(LaunchKernel, "cuLaunchKernel")                          \
  X(MemsetD8Async, "cuMemsetD8Async")

// Newer ones, each nullptr where the driver has not got it.
#define TERRACE_CUDA_NEWER_FUNCTIONS(X)                       \
  X(StreamWaitValue32, "cuStreamWaitValue32_v2")              \
  X(StreamWriteValue32, "cuStreamWriteValue32_v2")            \
  X(StreamBeginCapture, "cuStreamBeginCapture_v2")            \
  X(StreamEndCapture, "cuStreamEndCapture")                   \
  X(GraphInstantiateWithFlags, "cuGraphInstantiateWithFlags") \
  X(GraphLaunch, "cuGraphLaunch")                             \
  X(GraphExecDestroy, "cuGraphExecDestroy")                   \
  X(GraphDestroy, "cuGraphDestroy")

struct CudaDriver {
#define TERRACE_CUDA_MEMBER(name, symbol) decltype(&::cu##name) name = nullptr;
  TERRACE_CUDA_FUNCTIONS(TERRACE_CUDA_MEMBER)
  TERRACE_CUDA_NEWER_FUNCTIONS(TERRACE_CUDA_MEMBER)
#undef TERRACE_CUDA_MEMBER
  int version = 0;

  /// "CUDA_ERROR_X: what that means".
  std::string text(CUresult result) const;
};

/// In scope, this context is the thread's; then again what was before, which may be another library's.
class CurrentContext {
 public:
  CurrentContext(const CudaDriver& driver, CUcontext context)
      : driver_(driver), entered_(driver.CtxPushCurrent(context)) {}
  ~CurrentContext() {
    CUcontext same = nullptr;
    if (entered_ == CUDA_SUCCESS) driver_.CtxPopCurrent(&same);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  /// CUDA_SUCCESS, or why the context is not the thread's.
  CUresult entered() const noexcept { return entered_; }

 private:
  const CudaDriver& driver_;
  const CUresult entered_;
};

bool waits_for_flags(const CudaDriver& driver, CUdevice device);

/// Loaded and initialised once; the same answer ever after.
Result<const CudaDriver*> cuda_driver();

#endif

}  // namespace terrace
