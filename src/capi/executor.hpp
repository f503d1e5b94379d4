// SPDX-License-Identifier: Apache-2.0
// What a terrace_executor is: with fast memory of the caller, or with all tiers opened by the library, where
// kernels run on the host or on the queues of a device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "exec/open_tiers.hpp"
#include "exec/store.hpp"
#include "terrace/record.hpp"
#include "terrace/simulate.hpp"
#include "terrace/terrace.h"
#include "terrace/verify.hpp"

struct terrace_executor {
  terrace_executor() = default;
  terrace_executor(const terrace_executor&) = delete;
  terrace_executor& operator=(const terrace_executor&) = delete;
  virtual ~terrace_executor() = default;

  virtual void write(terrace::TensorId tensor, std::span<const std::byte> from) = 0;
  virtual void read(terrace::TensorId tensor, std::span<std::byte> to) = 0;
  virtual void write_part(terrace::TensorId tensor, std::uint64_t begin, std::span<const std::byte> from) = 0;
  virtual void read_part(terrace::TensorId tensor, std::uint64_t begin, std::span<std::byte> to) = 0;
  /// Where kernels would find the tensor between steps; nullptr where they would not.
  virtual void* address(terrace::TensorId tensor) const = 0;
  /// The device's queue that the running callback issues its kernel to; nullptr where kernels run on the
  /// host.
  virtual void* queue() const { return nullptr; }
  /// Has the device issue these kernels in bundles from now on (queue_runner.hpp); none: each on its own.
  virtual void bundle(std::span<const std::uint32_t> kernels);
  virtual void step() = 0;
  virtual const terrace::Timeline& timeline() const = 0;
  virtual const terrace::Record& record() const = 0;
  virtual const terrace::Plan& plan() const = 0;
};

namespace terrace::capi {

/// Throws CallbackEnded where a callback said that the step is to end.
void require_zero(int answer, const char* what, std::uint32_t index);
/// The number of a variant of the kernel by its name.
std::uint32_t variant_number(const Kernel& kernel, std::string_view name);
/// Kernels of the host as callbacks: their numbers are their places in the graph, which outlives the backend.
std::shared_ptr<const Backend> backend_of(const Graph& graph, const terrace_callbacks& callbacks);

/// An executor whose tiers the library has opened, and which keeps tensors in them between steps.
class StoredExecutor : public terrace_executor {
 public:
  void write(TensorId tensor, std::span<const std::byte> from) override;
  void read(TensorId tensor, std::span<std::byte> to) override;
  void write_part(TensorId tensor, std::uint64_t begin, std::span<const std::byte> from) override;
  void read_part(TensorId tensor, std::uint64_t begin, std::span<std::byte> to) override;
  void* address(TensorId tensor) const override;
  const Record& record() const override { return record_; }
  const Plan& plan() const override { return plan_.plan(); }

 protected:
  StoredExecutor(Record record, VerifiedPlan plan, const terrace_callbacks& callbacks, KernelsOn kernels);
  /// Throws where there is no such tensor, or none that has a place between steps.
  const Tensor& kept(TensorId tensor) const;

  const Record record_;
  const VerifiedPlan plan_;
  const std::shared_ptr<const Backend> backend_;  ///< of kernels on the host
  OpenTiers tiers_;
  std::unique_ptr<Store> store_;
};

/// Whether the first tier is on a device, whose queues run kernels then.
bool is_for_device(const Machine& machine);
std::unique_ptr<terrace_executor> device_executor(Record record, const VerifiedPlan& plan,
                                                  const terrace_callbacks& callbacks);

}  // namespace terrace::capi
