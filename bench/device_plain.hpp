// SPDX-License-Identifier: Apache-2.0
// Copies as any CUDA program makes them: cudaMemcpyAsync between memory of cudaMallocHost and of cudaMalloc,
// a stream for each direction.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#ifdef TERRACE_HAS_CUDART
#include <cuda_runtime_api.h>
#endif

namespace terrace::bench {

#ifdef TERRACE_HAS_CUDART

class PlainCopies {
 public:
  /// None: nothing is opened, and nothing may be copied.
  explicit PlainCopies(std::size_t bytes) {
    if (bytes == 0) return;
    require(cudaMalloc(&device_, bytes));
    require(cudaMallocHost(&host_, bytes));
    require(cudaStreamCreateWithFlags(&in_, cudaStreamNonBlocking));
    require(cudaStreamCreateWithFlags(&out_, cudaStreamNonBlocking));
  }
  ~PlainCopies() {
    if (device_ == nullptr) return;
    cudaStreamDestroy(in_);
    cudaStreamDestroy(out_);
    cudaFreeHost(host_);
    cudaFree(device_);
  }
  PlainCopies(const PlainCopies&) = delete;

  void in(std::size_t at, std::size_t bytes) {
    require(cudaMemcpyAsync(place(device_, at), place(host_, at), bytes, cudaMemcpyHostToDevice, in_));
  }
  void out(std::size_t at, std::size_t bytes) {
    require(cudaMemcpyAsync(place(host_, at), place(device_, at), bytes, cudaMemcpyDeviceToHost, out_));
  }
  void finish() {
    require(cudaStreamSynchronize(in_));
    require(cudaStreamSynchronize(out_));
  }

 private:
  static std::byte* place(void* memory, std::size_t at) { return static_cast<std::byte*>(memory) + at; }
  static void require(cudaError_t result) {
    if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
  }

  void *device_ = nullptr, *host_ = nullptr;
  cudaStream_t in_ = nullptr, out_ = nullptr;
};

#else

class PlainCopies {
 public:
  explicit PlainCopies(std::size_t bytes) {
    if (bytes > 0) throw std::runtime_error("built without CUDA: nothing to compare with");
  }
  void in(std::size_t, std::size_t) {}
  void out(std::size_t, std::size_t) {}
  void finish() {}
};

#endif

}  // namespace terrace::bench
