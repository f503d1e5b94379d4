#include "backends/backend.hpp"

#include <cstring>

#include "base/check.hpp"

namespace terrace {
namespace {

void copy_elements(const Tensor& tensor, const std::byte* from, std::byte* to) {
  check(tensor.layout.empty(), "this backend has no layouts of its own");
  const std::size_t bytes = static_cast<std::size_t>(tensor.shape.elements()) * size_of(tensor.type).count;
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

void Backend::from_row_major(const Graph& graph, TensorId id, const std::byte* row_major,
                             std::byte* stored) const {
  copy_elements(graph[id], row_major, stored);
}

void Backend::to_row_major(const Graph& graph, TensorId id, const std::byte* stored,
                           std::byte* row_major) const {
  copy_elements(graph[id], stored, row_major);
}

}  // namespace terrace
