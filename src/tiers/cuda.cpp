// SPDX-License-Identifier: Apache-2.0
#include "tiers/cuda.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>

#include "base/cuda_driver.hpp"
#include "terrace/error.hpp"
#include "tiers/device_tier.hpp"
#include "tiers/kinds.hpp"
#include "tiers/memory_tier.hpp"

namespace terrace {

#ifdef TERRACE_HAS_CUDA
namespace {

int cause_of(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return ENOMEM;
    case CUDA_ERROR_NOT_PERMITTED:
      return EPERM;
    case CUDA_ERROR_INVALID_VALUE:
      return EINVAL;
    default:
      return EIO;
  }
}

// Errors after which the context works on; after any other one nothing does.
bool survives(CUresult result) {
  return result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_INVALID_VALUE ||
         result == CUDA_ERROR_NOT_PERMITTED || result == CUDA_ERROR_NOT_SUPPORTED ||
         result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(const CudaDriver& driver, const Gpu& gpu, CUdevice device, CUcontext context)
      : driver_(driver),
        number_(gpu.number),
        name_(fmt::format("cuda:{}", gpu.number)),
        model_(gpu.name),
        device_(device),
        context_(context) {}
  ~CudaDevice() override { driver_.DevicePrimaryCtxRelease(device_); }
  CudaDevice(const CudaDevice&) = delete;

  const std::string& name() const noexcept override { return name_; }
  std::unique_ptr<DeviceAllocation> allocate(Bytes bytes) override;
  std::unique_ptr<DeviceQueue> make_queue() override;
  std::unique_ptr<DeviceEvent> make_event() override;
  std::unique_ptr<DeviceFlag> make_flag() override;
  std::unique_ptr<DevicePin> pin(std::span<std::byte> memory) override;
  bool reaches(std::span<const std::byte> memory) override;

  unsigned number() const noexcept { return number_; }
  const std::string& model() const noexcept { return model_; }
  struct Memory {
    Bytes free, total;
  };
  Memory memory() const {
    const Current current(*this);
    std::size_t free = 0, total = 0;
    require(driver_.MemGetInfo(&free, &total), "asking how much memory is free");
    return {{free}, {total}};
  }

  const CudaDriver& driver() const noexcept { return driver_; }

  /// This device's context in scope. Throws where the GPU cannot be used.
  class Current {
   public:
    explicit Current(const CudaDevice& device) : context_(device.driver_, device.context_) {
      device.require(context_.entered(), "using the GPU");
    }

   private:
    CurrentContext context_;
  };

  /// Gives something back. Where the GPU is lost, that is gone anyway.
  void quietly(auto give_back) const noexcept {
    const CurrentContext current(driver_, context_);
    if (current.entered() == CUDA_SUCCESS) give_back();
  }

  void require(CUresult result, std::string_view doing) const {
    if (result == CUDA_SUCCESS) [[likely]]
      return;
    throw EnvironmentError(
        fmt::format("{} failed on {} ({}): {}; {}", doing, name_, model_, driver_.text(result),
                    survives(result) ? "ask for less or free some"
                                     : "the GPU is lost to this process: start it again from its last "
                                       "checkpoint"),
        {name_, {}, 0, cause_of(result)});
  }

 private:
  const CudaDriver& driver_;
  const unsigned number_;
  const std::string name_, model_;
  const CUdevice device_;
  const CUcontext context_;
};

using Current = CudaDevice::Current;

class CudaEvent final : public DeviceEvent {
 public:
  explicit CudaEvent(const CudaDevice& device) : device_(device) {
    const Current current(device_);
    // A host that waits sleeps: the cores belong to kernels and copies.
    device_.require(device_.driver().EventCreate(&event_, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC),
                    "making an event");
  }
  ~CudaEvent() override {
    device_.quietly([&] { device_.driver().EventDestroy(event_); });
  }
  CudaEvent(const CudaEvent&) = delete;

  bool done() override {
    const Current current(device_);
    const CUresult result = device_.driver().EventQuery(event_);
    if (result == CUDA_ERROR_NOT_READY) return false;
    device_.require(result, "working through a queue");
    return true;
  }
  void wait() override {
    const Current current(device_);
    device_.require(device_.driver().EventSynchronize(event_), "working through a queue");
  }
  CUevent handle() const noexcept { return event_; }

 private:
  const CudaDevice& device_;
  CUevent event_ = nullptr;
};

/// A word in pinned memory of its own.
class CudaFlag final : public DeviceFlag {
 public:
  explicit CudaFlag(const CudaDevice& device) : device_(device) {
    const Current current(device_);
    void* memory = nullptr;
    device_.require(device_.driver().MemHostAlloc(&memory, sizeof(std::uint32_t), CU_MEMHOSTALLOC_PORTABLE),
                    "making a flag");
    word_ = static_cast<std::uint32_t*>(memory);
    *word_ = 0;
    device_.require(device_.driver().MemHostGetDevicePointer(&address_, memory, 0), "making a flag");
  }
  ~CudaFlag() override {
    device_.quietly([&] { device_.driver().MemFreeHost(word_); });
  }
  CudaFlag(const CudaFlag&) = delete;

  void raise(std::uint32_t to) noexcept override {
    if (value() < to) std::atomic_ref(*word_).store(to, std::memory_order_release);
  }
  std::uint32_t value() const noexcept override {
    return std::atomic_ref(*word_).load(std::memory_order_acquire);
  }
  CUdeviceptr address() const noexcept { return address_; }

 private:
  const CudaDevice& device_;
  std::uint32_t* word_ = nullptr;
  CUdeviceptr address_ = 0;
};

/// A graph as CUDA knows it, ready to be launched.
class CudaBundle final : public DeviceBundle {
 public:
  CudaBundle(const CudaDevice& device, CUgraphExec launchable) : device_(device), launchable_(launchable) {}
  ~CudaBundle() override {
    device_.quietly([&] { device_.driver().GraphExecDestroy(launchable_); });
  }
  CudaBundle(const CudaBundle&) = delete;
  CUgraphExec handle() const noexcept { return launchable_; }

 private:
  const CudaDevice& device_;
  const CUgraphExec launchable_;
};

class CudaQueue final : public DeviceQueue {
 public:
  explicit CudaQueue(const CudaDevice& device) : device_(device) {
    const Current current(device_);
    // Without this flag a queue would stop for whatever another library puts on the default one.
    device_.require(driver().StreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a queue");
  }
  ~CudaQueue() override {
    device_.quietly([&] {
      driver().StreamSynchronize(stream_);
      driver().StreamDestroy(stream_);
    });
  }
  CudaQueue(const CudaQueue&) = delete;

  void copy_in(DeviceAddress to, const std::byte* from, Bytes bytes) override {
    const Current current(device_);
    device_.require(driver().MemcpyHtoDAsync(to.value, from, bytes.count, stream_), "starting a copy in");
  }
  void copy_out(std::byte* to, DeviceAddress from, Bytes bytes) override {
    const Current current(device_);
    device_.require(driver().MemcpyDtoHAsync(to, from.value, bytes.count, stream_), "starting a copy out");
  }
  void copy_within(DeviceAddress to, DeviceAddress from, Bytes bytes) override {
    const Current current(device_);
    device_.require(driver().MemcpyDtoDAsync(to.value, from.value, bytes.count, stream_),
                    "starting a copy within");
  }
  void record(DeviceEvent& event) override {
    const Current current(device_);
    device_.require(driver().EventRecord(static_cast<CudaEvent&>(event).handle(), stream_),
                    "recording an event");
  }
  void wait_for(DeviceEvent& event) override {
    const Current current(device_);
    device_.require(driver().StreamWaitEvent(stream_, static_cast<CudaEvent&>(event).handle(), 0),
                    "making a queue wait");
  }
  void wait_for(DeviceFlag& flag, std::uint32_t value) override {
    const Current current(device_);
    device_.require(driver().StreamWaitValue32(stream_, static_cast<CudaFlag&>(flag).address(), value,
                                               CU_STREAM_WAIT_VALUE_GEQ),
                    "making a queue wait for a flag");
  }
  void raise(DeviceFlag& flag, std::uint32_t to) override {
    const Current current(device_);
    device_.require(driver().StreamWriteValue32(stream_, static_cast<CudaFlag&>(flag).address(), to,
                                                CU_STREAM_WRITE_VALUE_DEFAULT),
                    "raising a flag");
  }
  void begin_bundle() override {
    const Current current(device_);
    const bool known =
        driver().StreamBeginCapture != nullptr && driver().GraphInstantiateWithFlags != nullptr;
    // Other threads go on as before.
    device_.require(known ? driver().StreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED)
                          : CUDA_ERROR_NOT_SUPPORTED,
                    "beginning a bundle");
  }
  std::unique_ptr<DeviceBundle> end_bundle() override {
    const Current current(device_);
    CUgraph graph = nullptr;
    CUgraphExec launchable = nullptr;
    CUresult result = driver().StreamEndCapture(stream_, &graph);
    if (result == CUDA_SUCCESS) result = driver().GraphInstantiateWithFlags(&launchable, graph, 0);
    if (graph != nullptr) driver().GraphDestroy(graph);
    device_.require(result, "ending a bundle");
    return std::make_unique<CudaBundle>(device_, launchable);
  }
  void issue(DeviceBundle& bundle) override {
    const Current current(device_);
    device_.require(driver().GraphLaunch(static_cast<CudaBundle&>(bundle).handle(), stream_),
                    "issuing a bundle");
  }
  void finish() override {
    const Current current(device_);
    device_.require(driver().StreamSynchronize(stream_), "working through a queue");
  }
  void* native() noexcept override { return stream_; }

 private:
  const CudaDriver& driver() const { return device_.driver(); }

  const CudaDevice& device_;
  CUstream stream_ = nullptr;
};

class CudaPin final : public DevicePin {
 public:
  CudaPin(const CudaDevice& device, std::byte* memory) : device_(device), memory_(memory) {}
  ~CudaPin() override {
    if (memory_ != nullptr) device_.quietly([&] { device_.driver().MemHostUnregister(memory_); });
  }
  CudaPin(const CudaPin&) = delete;

 private:
  const CudaDevice& device_;
  std::byte* const memory_;  // nullptr where somebody else has pinned it
};

class CudaAllocation final : public DeviceAllocation {
 public:
  CudaAllocation(const CudaDevice& device, Bytes bytes) : device_(device) {
    const Current current(device_);
    device_.require(device_.driver().MemAlloc(&address_, bytes.count),
                    fmt::format("allocating {}", readable(bytes)));
  }
  ~CudaAllocation() override {
    device_.quietly([&] { device_.driver().MemFree(address_); });
  }
  CudaAllocation(const CudaAllocation&) = delete;
  DeviceAddress address() const noexcept override { return {address_}; }

 private:
  const CudaDevice& device_;
  CUdeviceptr address_ = 0;
};

std::unique_ptr<DeviceAllocation> CudaDevice::allocate(Bytes bytes) {
  return std::make_unique<CudaAllocation>(*this, bytes);
}
std::unique_ptr<DeviceQueue> CudaDevice::make_queue() { return std::make_unique<CudaQueue>(*this); }
std::unique_ptr<DeviceEvent> CudaDevice::make_event() { return std::make_unique<CudaEvent>(*this); }

std::unique_ptr<DeviceFlag> CudaDevice::make_flag() {
  if (!waits_for_flags(driver_, device_)) return nullptr;
  return std::make_unique<CudaFlag>(*this);
}

std::unique_ptr<DevicePin> CudaDevice::pin(std::span<std::byte> memory) {
  const Current current(*this);
  const CUresult result = driver_.MemHostRegister(memory.data(), memory.size(), CU_MEMHOSTREGISTER_PORTABLE);
  if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) return std::make_unique<CudaPin>(*this, nullptr);
  if (result != CUDA_SUCCESS) {
    throw EnvironmentError(
        fmt::format("pinning {} of memory for {} was refused ({}): raise the limit on locked memory "
                    "(ulimit -l, in a container --ulimit memlock=-1), or ask for less",
                    readable(Bytes{memory.size()}), name_, driver_.text(result)),
        {name_, {}, 0, cause_of(result)});
  }
  return std::make_unique<CudaPin>(*this, memory.data());
}

bool CudaDevice::reaches(std::span<const std::byte> memory) {
  const Current current(*this);
  const auto pinned = [&](const std::byte* place) {
    // The call for a single attribute fails for memory that CUDA does not know, which is no error here.
    CUmemorytype type{};
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void* to = &type;
    const auto address = reinterpret_cast<CUdeviceptr>(place);
    return driver_.PointerGetAttributes(1, &attribute, &to, address) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_HOST;
  };
  return memory.empty() || (pinned(memory.data()) && pinned(memory.data() + memory.size() - 1));
}

Result<std::shared_ptr<CudaDevice>> open_device(unsigned number) {
  const auto found = probe_cuda();
  if (!found) return found.error();
  if (number >= found->gpus.size()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("there is no GPU {}: this process may use {} of them, numbered from 0", number,
                             found->gpus.size())};
  }
  const CudaDriver& driver = **cuda_driver();
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUresult result = driver.DeviceGet(&device, static_cast<int>(number));
  if (result == CUDA_SUCCESS) result = driver.DevicePrimaryCtxRetain(&context, device);
  if (result != CUDA_SUCCESS) {
    throw EnvironmentError(
        fmt::format("cuda:{} cannot be used ({}): another program may have it for itself, or its memory is "
                    "full; see nvidia-smi",
                    number, driver.text(result)),
        {fmt::format("cuda:{}", number), {}, 0, cause_of(result)});
  }
  return std::make_shared<CudaDevice>(driver, found->gpus[number], device, context);
}

Error with_name(const TierSpec& spec, const Error& error) {
  return {error.code, to_string(spec) + ": " + error.message};
}

}  // namespace

Result<std::shared_ptr<Device>> open_cuda_device(unsigned number) {
  auto device = open_device(number);
  if (!device) return device.error();
  return std::shared_ptr<Device>(std::move(*device));
}

std::optional<unsigned> gpu_number(const Device& device) {
  const auto* const gpu = dynamic_cast<const CudaDevice*>(&device);
  return gpu == nullptr ? std::nullopt : std::optional(gpu->number());
}

Result<Bytes> free_on_gpu(unsigned number) {
  const auto device = open_device(number);
  if (!device) return device.error();
  return (*device)->memory().free;
}

Result<std::unique_ptr<Tier>> open_cuda_tier(const TierSpec& spec) {
  auto description = describe(spec, kDeviceGranule);
  if (!description) return description.error();
  description->addressable = false;
  auto device = open_device(spec.gpu);
  if (!device) return with_name(spec, device.error());
  const auto memory = (*device)->memory();
  if (description->capacity > memory.free) {
    return Error{ErrorCode::too_large,
                 fmt::format("{} needs {} of {} ({}), which has {} of {} free, {} too little: ask for less, "
                             "or end the programs that use it (nvidia-smi names them)",
                             description->name, readable(description->capacity), (*device)->name(),
                             (*device)->model(), readable(memory.free), readable(memory.total),
                             readable(description->capacity - memory.free))};
  }
  return std::unique_ptr<Tier>(std::make_unique<DeviceTier>(std::move(*description), std::move(*device)));
}

Result<std::unique_ptr<Tier>> open_pinned_tier(const TierSpec& spec) {
  auto description = describe(spec, kDeviceGranule);  // so that neighbours here are neighbours there
  if (!description) return description.error();
  auto device = open_device(0);
  if (!device) return with_name(spec, device.error());
  TierDescription pages = *description;
  pages.spec.huge_pages = true;  // far fewer of them to pin
  auto memory = anonymous_memory(pages);
  if (!memory) return memory.error();
  description->note = pages.note;
  return std::unique_ptr<Tier>(
      std::make_unique<PinnedTier>(std::move(*description), std::move(*memory), std::move(*device)));
}

#else

namespace {

Error not_built(const std::string& name) {
  return {ErrorCode::unsupported, name + ": " + probe_cuda().error().message};
}

}  // namespace

Result<std::shared_ptr<Device>> open_cuda_device(unsigned number) {
  return not_built(fmt::format("cuda:{}", number));
}
std::optional<unsigned> gpu_number(const Device&) { return std::nullopt; }
Result<Bytes> free_on_gpu(unsigned number) { return not_built(fmt::format("cuda:{}", number)); }
Result<std::unique_ptr<Tier>> open_cuda_tier(const TierSpec& spec) { return not_built(to_string(spec)); }
Result<std::unique_ptr<Tier>> open_pinned_tier(const TierSpec& spec) { return not_built(to_string(spec)); }

#endif

}  // namespace terrace
