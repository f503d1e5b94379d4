// SPDX-License-Identifier: Apache-2.0
#include "backends/synthetic/synthetic.hpp"

#include <cstring>

#include "backends/backend.hpp"
#include "backends/fake_ranges.hpp"
#include "backends/synthetic/cuda_kernels.hpp"
#include "backends/synthetic/formula.hpp"
#include "tiers/fake_device.hpp"

namespace terrace {
namespace {

std::uint64_t digest_of(std::span<const std::span<std::byte>> inputs, std::uint64_t salt) {
  std::uint64_t digest = synthetic::scramble(salt);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    for (std::size_t i = 0; i < inputs[k].size(); ++i)
      digest += synthetic::share_of(k, i, static_cast<std::uint8_t>(inputs[k][i]));
  }
  return digest;
}

class FakeKernels final : public SyntheticKernels {
 public:
  explicit FakeKernels(FakeDevice& device) : device_(device) {}

  void mix(DeviceQueue& queue, std::span<const DeviceBytes> inputs, std::span<const DeviceBytes> outputs,
           std::uint64_t salt) override {
    device_.launch(
        queue, fake_ranges(inputs), fake_ranges(outputs),
        [this, salt, in = std::vector(inputs.begin(), inputs.end()),
         out = std::vector(outputs.begin(), outputs.end())] { mix_on_host(inside(in), inside(out), salt); });
  }
  void stream(DeviceQueue& queue, DeviceBytes to, DeviceAddress from) override {
    const DeviceBytes source{from, to.size};
    device_.launch(queue, fake_ranges({&source, 1}), fake_ranges({&to, 1}), [this, to, from] {
      std::memcpy(device_.bytes_at(to.address), device_.bytes_at(from), to.size.count);
    });
  }
  void spin(DeviceQueue& queue, Seconds) override {
    device_.launch(queue, {}, {}, [] {});
  }
  double compute(DeviceQueue& queue, DeviceAddress) override {
    spin(queue, Seconds{0});
    return 1;
  }

 private:
  std::vector<std::span<std::byte>> inside(const std::vector<DeviceBytes>& operands) const {
    std::vector<std::span<std::byte>> spans;
    for (const DeviceBytes& one : operands) {
      if (one.size.count == 0) {
        spans.emplace_back();
      } else {
        spans.emplace_back(device_.bytes_at(one.address), one.size.count);
      }
    }
    return spans;
  }

  FakeDevice& device_;
};

}  // namespace

Result<std::unique_ptr<SyntheticKernels>> synthetic_kernels(Device& device) {
  if (auto* const fake = dynamic_cast<FakeDevice*>(&device))
    return std::unique_ptr<SyntheticKernels>(std::make_unique<FakeKernels>(*fake));
  return cuda_kernels(device);
}

void mix_on_host(std::span<const std::span<std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
                 std::uint64_t salt) {
  const std::uint64_t digest = digest_of(inputs, salt);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    for (std::size_t i = 0; i < outputs[k].size(); ++i)
      outputs[k][i] = static_cast<std::byte>(synthetic::byte_at(digest, k, i));
  }
}

std::uint64_t salt_of(const Kernel& kernel, std::uint64_t seed, std::uint64_t step) {
  std::uint64_t salt = synthetic::scramble(seed + 1) + synthetic::scramble(step + 2);
  for (const char letter : kernel.name) salt = synthetic::scramble(salt + static_cast<unsigned char>(letter));
  return salt;
}

std::shared_ptr<const Backend> mixing_backend(const std::string& operation) {
  return foreign_backend({{operation, [](const ForeignRun& run) {
                             mix_on_host(run.inputs, run.outputs, salt_of(run.kernel, run.seed, run.step));
                           }}});
}

std::shared_ptr<const Backend> mixing_device_backend(const std::string& operation,
                                                     SyntheticKernels& kernels) {
  return foreign_device_backend({{operation, [&kernels](const ForeignLaunch& launch) {
                                    kernels.mix(launch.queue, launch.inputs, launch.outputs,
                                                salt_of(launch.kernel, launch.seed, launch.step));
                                  }}});
}

}  // namespace terrace
