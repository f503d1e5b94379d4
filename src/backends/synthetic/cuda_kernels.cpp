// SPDX-License-Identifier: Apache-2.0
#include "backends/synthetic/cuda_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>

#include "base/cuda_driver.hpp"
#include "terrace/error.hpp"
#include "tiers/cuda.hpp"

#ifdef TERRACE_HAS_CUDA_KERNELS
/// What the CUDA compiler made of kernels.cu.
extern "C" const unsigned char embedded_terrace_cuda_kernels[];
#endif

namespace terrace {

#if defined(TERRACE_HAS_CUDA) && defined(TERRACE_HAS_CUDA_KERNELS)
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kMostBlocks = 2048;  // more than any GPU runs at once

unsigned blocks_for(std::uint64_t count) {
  const std::uint64_t wanted = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, kMostBlocks));
}

class CudaKernels final : public SyntheticKernels {
 public:
  CudaKernels(const CudaDriver& driver, Device& device, CUdevice number, CUcontext context)
      : driver_(driver), device_(device), number_(number), context_(context) {}
  ~CudaKernels() override {
    digests_.clear();
    const CurrentContext current(driver_, context_);
    if (module_ != nullptr) driver_.ModuleUnload(module_);
    driver_.DevicePrimaryCtxRelease(number_);
  }
  CudaKernels(const CudaKernels&) = delete;

  CUresult load() {
    const CurrentContext current(driver_, context_);
    const CUresult loaded = driver_.ModuleLoadData(&module_, embedded_terrace_cuda_kernels);
    if (loaded != CUDA_SUCCESS) return loaded;
    for (const auto& [name, function] : {std::pair{"terrace_digest", &digest_},
                                         {"terrace_write", &write_},
                                         {"terrace_stream", &stream_},
                                         {"terrace_spin", &spin_},
                                         {"terrace_multiply_add", &multiply_add_}}) {
      if (const CUresult found = driver_.ModuleGetFunction(function, module_, name); found != CUDA_SUCCESS)
        return found;
    }
    return CUDA_SUCCESS;
  }

  void mix(DeviceQueue& queue, std::span<const DeviceBytes> inputs, std::span<const DeviceBytes> outputs,
           std::uint64_t salt) override {
    CUdeviceptr digest = digest_of(queue).value;
    const CurrentContext current(driver_, context_);
    const auto stream = static_cast<CUstream>(queue.native());
    require(driver_.MemsetD8Async(digest, 0, sizeof(std::uint64_t), stream));
    for (std::uint64_t k = 0; k < inputs.size(); ++k) {
      CUdeviceptr bytes = inputs[k].address.value;
      std::uint64_t size = inputs[k].size.count;
      void* arguments[] = {&bytes, &size, &k, &digest};
      launch(digest_, blocks_for(size), stream, arguments);
    }
    for (std::uint64_t k = 0; k < outputs.size(); ++k) {
      CUdeviceptr bytes = outputs[k].address.value;
      std::uint64_t size = outputs[k].size.count;
      void* arguments[] = {&bytes, &size, &k, &digest, &salt};
      launch(write_, blocks_for(size), stream, arguments);
    }
  }

  void stream(DeviceQueue& queue, DeviceBytes to, DeviceAddress from) override {
    const CurrentContext current(driver_, context_);
    CUdeviceptr target = to.address.value, source = from.value;
    std::uint64_t count = to.size.count / kVector;
    void* arguments[] = {&target, &source, &count};
    launch(stream_, blocks_for(count), static_cast<CUstream>(queue.native()), arguments);
  }

  void spin(DeviceQueue& queue, Seconds time) override {
    const CurrentContext current(driver_, context_);
    std::uint64_t nanoseconds = static_cast<std::uint64_t>(time.count() * 1e9);
    void* arguments[] = {&nanoseconds};
    require(driver_.LaunchKernel(spin_, 1, 1, 1, 1, 1, 1, 0, static_cast<CUstream>(queue.native()), arguments,
                                 nullptr));
  }

  double compute(DeviceQueue& queue, DeviceAddress scratch) override {
    const CurrentContext current(driver_, context_);
    CUdeviceptr out = scratch.value;
    std::uint32_t rounds = 4096;
    void* arguments[] = {&out, &rounds};
    launch(multiply_add_, kMostBlocks, static_cast<CUstream>(queue.native()), arguments);
    return 8.0 * rounds * kMostBlocks * kThreads;
  }

 private:
  static constexpr std::uint64_t kVector = 16;  // bytes that one thread copies at once

  void launch(CUfunction function, unsigned blocks, CUstream stream, void** arguments) {
    require(driver_.LaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr));
  }
  void require(CUresult result) const {
    if (result == CUDA_SUCCESS) return;
    throw EnvironmentError(
        fmt::format("launching a kernel failed on {}: {}; the GPU is lost to this process: "
                    "start it again from its last checkpoint",
                    device_.name(), driver_.text(result)),
        {device_.name(), {}, 0, EIO});
  }
  // Kernels of one queue take place in order and share a digest.
  DeviceAddress digest_of(DeviceQueue& queue) {
    const std::lock_guard lock(mutex_);
    auto& digest = digests_[queue.native()];
    if (!digest) digest = device_.allocate({sizeof(std::uint64_t)});
    return digest->address();
  }

  const CudaDriver& driver_;
  Device& device_;
  const CUdevice number_;
  const CUcontext context_;
  CUmodule module_ = nullptr;
  CUfunction digest_ = nullptr, write_ = nullptr, stream_ = nullptr, spin_ = nullptr, multiply_add_ = nullptr;
  std::mutex mutex_;                                            // guards the map
  std::map<void*, std::unique_ptr<DeviceAllocation>> digests_;  // by queue
};

}  // namespace

Result<std::unique_ptr<SyntheticKernels>> cuda_kernels(Device& device) {
  const auto gpu = gpu_number(device);
  if (!gpu) return Error{ErrorCode::unsupported, device.name() + " has no synthetic kernels"};
  const CudaDriver& driver = **cuda_driver();
  CUdevice number = 0;
  CUcontext context = nullptr;
  CUresult result = driver.DeviceGet(&number, static_cast<int>(*gpu));
  if (result == CUDA_SUCCESS) result = driver.DevicePrimaryCtxRetain(&context, number);
  if (result == CUDA_SUCCESS) {
    auto kernels = std::make_unique<CudaKernels>(driver, device, number, context);
    result = kernels->load();
    if (result == CUDA_SUCCESS) return std::unique_ptr<SyntheticKernels>(std::move(kernels));
  }
  return Error{
      ErrorCode::unsupported,
      fmt::format("{} does not take this program's kernels ({}): update the NVIDIA driver, which knows "
                  "CUDA {}",
                  device.name(), driver.text(result), cuda_version_text(driver.version))};
}

#else

Result<std::unique_ptr<SyntheticKernels>> cuda_kernels(Device& device) {
  return Error{ErrorCode::unsupported,
               fmt::format("{} has no synthetic kernels in this build: it needs the CUDA toolkit's compiler",
                           device.name())};
}

#endif

}  // namespace terrace
