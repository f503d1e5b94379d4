// SPDX-License-Identifier: Apache-2.0
// Executes a graph on one number per tensor, to see whether two graphs compute the same.
//
// A kernel's outputs are hashes of its name and what it reads. Memory that was never given anything holds
// noise of its own, and a workspace is scribbled over: whoever reads what he should not gets other numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

struct Outcome {
  std::map<std::string, std::vector<std::uint64_t>> written;  ///< by kernel: what it wrote
  std::map<std::string, std::uint64_t> persistent;            ///< by tensor: what is left, where used
  std::vector<std::uint64_t> results;
  bool operator==(const Outcome&) const = default;
};

class Interpreter {
 public:
  explicit Interpreter(const Graph& graph) : graph_(graph) {
    for (const Tensor& tensor : graph.tensors) memory_.push_back(mixed(1, text(tensor.name)));
  }

  Outcome run() {
    Outcome outcome;
    for (const Kernel& kernel : graph_.kernels) outcome.written[kernel.name] = run(kernel);
    for (const Kernel& kernel : graph_.kernels) {
      for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
        for (const Operand& operand : *operands) {
          const Tensor& tensor = graph_[operand.tensor];
          if (tensor.persistent) outcome.persistent[tensor.name] = memory_[operand.tensor.index];
        }
      }
    }
    for (const TensorId id : graph_.results) outcome.results.push_back(memory_[id.index]);
    return outcome;
  }

 private:
  static std::uint64_t text(const std::string& text) { return std::hash<std::string>()(text); }
  static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    a = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9ULL;
    return a ^ (a >> 31);
  }

  std::vector<std::uint64_t> run(const Kernel& kernel) {
    std::uint64_t state = mixed(2, text(kernel.name));
    for (const Operand& in : kernel.inputs) state = mixed(state, memory_[in.tensor.index]);
    if (kernel.workspace) memory_[kernel.workspace.index] = mixed(state, 3);
    std::vector<std::uint64_t> written;
    for (const Operand& out : kernel.outputs) {
      written.push_back(mixed(state, 4 + written.size()));
      memory_[out.tensor.index] = written.back();
    }
    return written;
  }

  const Graph& graph_;
  std::vector<std::uint64_t> memory_;
};

inline Outcome interpret(const Graph& graph) { return Interpreter(graph).run(); }

}  // namespace terrace
