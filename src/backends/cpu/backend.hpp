// SPDX-License-Identifier: Apache-2.0
// Neural networks on this computer's processor, by oneDNN and the loops of cpu/math. Its team of threads is
// OpenMP's.
#pragma once

#include "backends/backend.hpp"
#include "backends/processor.hpp"

namespace terrace::cpu {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(Variants variants = Variants::same_bits) : variants_(variants) {}

  Result<Graph> lower(const Graph& graph, unsigned threads) const override;
  Graph with_variants(Graph graph) const override;
  Kernels instantiate(const Graph& graph) const override;
  std::unique_ptr<RunnableKernel> instantiate(const Graph& graph, const Kernel& kernel) const override;
  void use_threads(unsigned threads) const override;
  bool can_run(const Kernel& kernel) const override;
  std::string version() const override;
  bool changes_time(std::string_view attribute) const override;
  std::int64_t integers_below(const Kernel& kernel) const override;
  void from_row_major(const Graph& graph, TensorId id, const std::byte* row_major,
                      std::byte* stored) const override;
  void to_row_major(const Graph& graph, TensorId id, const std::byte* stored,
                    std::byte* row_major) const override;

 private:
  const Variants variants_;
};

}  // namespace terrace::cpu
