// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/backend.hpp"

#include <fmt/format.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "backends/cpu/instantiate.hpp"
#include "backends/cpu/lowering.hpp"
#include "backends/cpu/variants.hpp"
#include "math/team.hpp"
#include "terrace/operation.hpp"

namespace terrace::cpu {

Result<Graph> CpuBackend::lower(const Graph& graph, unsigned threads) const {
  return cpu::lower(graph, threads);
}
Graph CpuBackend::with_variants(Graph graph) const {
  graph = cpu::with_variants(std::move(graph));
  return variants_ == Variants::any ? with_direct_convolutions(std::move(graph)) : graph;
}
Kernels CpuBackend::instantiate(const Graph& graph) const { return cpu::instantiate(graph); }
std::unique_ptr<RunnableKernel> CpuBackend::instantiate(const Graph& graph, const Kernel& kernel) const {
  return cpu::instantiate(graph, kernel);
}
void CpuBackend::use_threads(unsigned threads) const { math::set_team_size(threads); }

bool CpuBackend::can_run(const Kernel& kernel) const { return operation_of(kernel) != Operation::custom; }

std::string CpuBackend::version() const {
  const dnnl_version_t* library = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} {}", library->major, library->minor, library->patch, library->hash);
}

/// Which random numbers a dropout draws does not change how long it takes.
bool CpuBackend::changes_time(std::string_view attribute) const { return attribute != "stream"; }

/// Indices are valid, and so are labels.
std::int64_t CpuBackend::integers_below(const Kernel& kernel) const {
  const auto rows_of = [&](const Operand& table) {
    const std::int64_t whole = attributes_as<EmbeddingAttributes>(kernel).rows;
    return whole > 0 ? whole : table.shape[0];
  };
  switch (operation_of(kernel)) {
    case Operation::embedding:
      return rows_of(kernel.inputs[0]);
    case Operation::embedding_backward:
      return rows_of(kernel.outputs[0]);
    case Operation::cross_entropy:
    case Operation::cross_entropy_backward:
      return kernel.inputs[0].shape.back();
    default:
      return 1;
  }
}

void CpuBackend::from_row_major(const Graph& graph, TensorId id, const std::byte* row_major,
                                std::byte* stored) const {
  cpu::from_row_major(graph, id, row_major, stored);
}
void CpuBackend::to_row_major(const Graph& graph, TensorId id, const std::byte* stored,
                              std::byte* row_major) const {
  cpu::to_row_major(graph, id, stored, row_major);
}

}  // namespace terrace::cpu
