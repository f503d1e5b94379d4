// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "backends/backend.hpp"
#include "backends/processor.hpp"
#include "base/check.hpp"
#include "base/system.hpp"
#include "graph/passes.hpp"
#include "plan/packing.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/plan.hpp"
#include "terrace/program.hpp"

namespace terrace {
namespace {

void assign_offsets(Program& program) {
  const Lifetimes lifetimes(program.graph);
  const std::size_t kernels = program.graph.kernels.size();
  const auto end = static_cast<std::uint32_t>(kernels > 0 ? kernels - 1 : 0);
  std::vector<PackingItem> items;
  for (std::uint32_t i = 0; i < program.graph.tensors.size(); ++i) {
    const Tensor& tensor = program.graph.tensors[i];
    // What no kernel uses has no lifetime, and is kept all the same.
    items.push_back(tensor.persistent ? PackingItem{tensor.bytes, 0, end}
                                      : PackingItem{tensor.bytes, lifetimes[{i}].first, lifetimes[{i}].last});
  }
  Packing packing = pack(items, program.alignment);
  program.offsets = std::move(packing.offsets);
  program.arena = packing.total;
  program.peak = lifetimes.peak_bytes();
}

}  // namespace

Result<Program> compile(const Graph& graph, unsigned threads) {
  auto backend = processor_backend();
  if (!backend) return backend.error();
  return compile(graph, *std::move(backend), threads);
}

Result<Program> compile(const Graph& graph, std::shared_ptr<const Backend> backend, unsigned threads) {
  check(backend != nullptr, "kernels run on a backend");
  if (auto valid = validate(graph); !valid) return valid.error();
  Program program;
  program.threads = threads != 0 ? threads : probe_cores().usable();
  program.backend = std::move(backend);
  program.backend->use_threads(program.threads);
  auto lowered = program.backend->lower(graph, program.threads);
  if (!lowered) return lowered.error();
  program.graph = program.backend->with_variants(share_in_place(schedule(std::move(*lowered))));
  assign_offsets(program);
  return program;
}

Program as_planned(Program program, const Plan& plan) {
  std::vector<bool> known(program.graph.kernels.size());
  for (const Instruction& instruction : plan.instructions) {
    const auto* run = std::get_if<Run>(&instruction);
    if (run == nullptr || known[run->kernel.index]) continue;
    known[run->kernel.index] = true;
    Kernel& kernel = program.graph[run->kernel];
    // The workspace stays, so that all offsets hold; a variant that does without leaves it alone.
    if (kernel.variants.size() > 1)
      std::rotate(kernel.variants.begin(), kernel.variants.begin() + run->variant, kernel.variants.end());
  }
  return program;
}

Program aligned(Program program, Bytes alignment) {
  check(alignment >= Bytes{64} && std::has_single_bit(alignment.count), "alignment is a power of two");
  program.alignment = alignment;
  assign_offsets(program);
  return program;
}

}  // namespace terrace
