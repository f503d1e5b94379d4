#include "terrace/graph.hpp"

namespace terrace {

std::string_view to_string(TensorKind kind) {
  switch (kind) {
    case TensorKind::input:
      return "input";
    case TensorKind::weight:
      return "weight";
    case TensorKind::activation:
      return "activation";
    case TensorKind::gradient:
      return "gradient";
    case TensorKind::optimizer_state:
      return "optimizer_state";
    case TensorKind::statistics:
      return "statistics";
    case TensorKind::workspace:
      return "workspace";
    case TensorKind::token:
      return "token";
  }
  return "?";
}

std::string_view to_string(Initial::Kind kind) {
  switch (kind) {
    case Initial::Kind::undefined:
      return "undefined";
    case Initial::Kind::constant:
      return "constant";
    case Initial::Kind::uniform:
      return "uniform";
    case Initial::Kind::normal:
      return "normal";
    case Initial::Kind::positions:
      return "positions";
  }
  return "?";
}

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
  }
  return "?";
}

TensorId find_tensor(const Graph& graph, std::string_view name) {
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].name == name) return {i};
  }
  return {};
}

std::int64_t parameters(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::weight) sum += tensor.shape.elements();
  }
  return sum;
}

}  // namespace terrace
