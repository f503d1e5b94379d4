// SPDX-License-Identifier: Apache-2.0
// A static graph: the kernels of one step in execution order and the tensors they read and write.
//
// A graph is plain data, freely copied and compared. The order of `kernels` is the order of execution, and
// what one kernel writes the next may read: that order is the only dependence there is. A tensor is a piece
// of memory, not a value: a kernel that works in place names the same tensor among its inputs and its
// outputs. What a kernel computes is a name with attributes, which only its backend understands. Built by
// hand or by `Net` (net.hpp), read from JSON (graph_json.hpp), analysed by `Lifetimes` (lifetimes.hpp).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/attributes.hpp"
#include "terrace/bytes.hpp"
#include "terrace/result.hpp"
#include "terrace/shape.hpp"

namespace terrace {

struct TensorId {
  std::uint32_t index = std::numeric_limits<std::uint32_t>::max();
  constexpr auto operator<=>(const TensorId&) const = default;
  /// Whether this names a tensor at all.
  constexpr explicit operator bool() const { return index != std::numeric_limits<std::uint32_t>::max(); }
};

/// The place of a kernel in the order of execution.
struct KernelId {
  std::uint32_t index = std::numeric_limits<std::uint32_t>::max();
  constexpr auto operator<=>(const KernelId&) const = default;
  constexpr explicit operator bool() const { return index != std::numeric_limits<std::uint32_t>::max(); }
};

enum class TensorKind : std::uint8_t {
  input,            ///< given anew for every step
  weight,           ///< trained
  activation,       ///< made forward
  gradient,         ///< made backward
  optimizer_state,  ///< momentum and the like
  statistics,       ///< means and variances
  workspace,        ///< scratch of one kernel
  token,            ///< stands for state outside of all tensors, as a random generator has
};
std::string_view to_string(TensorKind kind);

/// What a tensor holds before the first step.
struct Initial {
  enum class Kind : std::uint8_t {
    undefined,
    constant,   ///< every element is `a`
    uniform,    ///< between `a` and `b`
    normal,     ///< mean `a`, deviation `b`
    positions,  ///< i32: element i is i modulo `a`
  };
  Kind kind = Kind::undefined;
  float a = 0, b = 0;
  bool operator==(const Initial&) const = default;
};
std::string_view to_string(Initial::Kind kind);

/// Some rows of a tensor that is kept in parts (nn/split.hpp). Users know the whole by its name.
struct PartOf {
  std::string name;        ///< of the whole
  std::int64_t first = 0;  ///< where in the whole the part's rows begin; rows are along axis 0
  std::int64_t rows = 0;   ///< of the whole
  bool operator==(const PartOf&) const = default;
};

struct Tensor {
  std::string name;
  Shape shape;
  DataType type = DataType::f32;
  TensorKind kind = TensorKind::activation;
  bool persistent = false;  ///< its bytes must survive from step to step
  Bytes bytes;              ///< as stored: layouts may pad
  std::string layout;       ///< empty: row-major; else the name the kernels' library has for it
  Initial initial;          ///< of a part: of the whole
  std::optional<PartOf> part_of = {};
  bool operator==(const Tensor&) const = default;
};

/// A tensor as one kernel sees it.
struct Operand {
  TensorId tensor;
  Shape shape;         ///< the kernel's view: as many elements as the tensor has
  Bytes touched;       ///< how much of it one run reads or writes
  std::string layout;  ///< how the kernel takes the elements to lie; empty: row-major in `shape`
  bool operator==(const Operand&) const = default;
};

/// An output that may take over an input's memory, if nobody reads the input afterwards.
struct InPlacePair {
  std::uint8_t input = 0, output = 0;
  bool operator==(const InPlacePair&) const = default;
};

enum class Phase : std::uint8_t { forward, backward, update };
std::string_view to_string(Phase phase);

/// One implementation of a kernel.
struct Variant {
  std::string name;
  Bytes workspace;
  std::optional<Seconds> time;  ///< as measured where the graph comes from
  bool operator==(const Variant&) const = default;
};

struct Kernel {
  std::string name;
  std::string operation = "custom";  ///< what it does, by a name that its backend knows
  Attributes attributes;             ///< how it does it
  std::vector<Operand> inputs, outputs;
  TensorId workspace;  ///< none: it needs no scratch
  std::vector<InPlacePair> in_place;
  double flops = 0;  ///< floating-point operations of one run
  std::uint32_t layer = 0;
  Phase phase = Phase::forward;
  std::vector<Variant> variants;  ///< empty: one, without a name
  bool operator==(const Kernel&) const = default;
};

struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Kernel> kernels;
  std::vector<std::string> layers;
  std::vector<TensorId> results;  ///< what the step is run for: kept to its end

  Tensor& operator[](TensorId id) { return tensors[id.index]; }
  const Tensor& operator[](TensorId id) const { return tensors[id.index]; }
  Kernel& operator[](KernelId id) { return kernels[id.index]; }
  const Kernel& operator[](KernelId id) const { return kernels[id.index]; }
  bool operator==(const Graph&) const = default;
};

/// The tensor of that name, or none.
TensorId find_tensor(const Graph& graph, std::string_view name);
/// Returns the number of elements of all trained weights.
std::int64_t parameters(const Graph& graph);

/// Returns a hash of a graph's structure, which changes whenever a plan or profile for it might no longer be
/// one. Names do not count.
std::string fingerprint(const Graph& graph);

/// Checks that a graph is valid. Names the first tensor or kernel that is wrong. What holds of a valid graph:
/// - Tensors have names, each its own. Extents are not negative, their product fits in 63 bits, and `bytes`
///   holds all elements. All tensors together have fewer than 2^63 bytes.
/// - The parts of one tensor are persistent, of one kind and type, stand in the order of their rows and have
///   all of them; no tensor has the name of the whole.
/// - Every id names a tensor, every layer is one. A view has as many elements as its tensor.
/// - A kernel's operation has a name. It writes no tensor twice. Its in-place pairs name operands it has.
///   Whether the operands and attributes are those the operation wants is for its backend to say; of neural
///   networks' operations check_operations (operation.hpp) says it.
/// - Nothing is read before it is written, and results are written; inputs and persistent tensors always are.
/// - A token is persistent. Kernels that have one for an operand run once in a step and, of one token, in the
///   graph's order: no copy of the token brings back the state it stands for.
/// - A workspace belongs to one kernel, is no operand, and does not outlive it. No other tensor is one.
/// - Attributes are finite. Work and times are finite and not negative.
Result<void> validate(const Graph& graph);

}  // namespace terrace
