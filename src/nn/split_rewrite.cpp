// SPDX-License-Identifier: Apache-2.0
#include "nn/split_rewrite.hpp"

#include <fmt/format.h>

#include <unordered_set>

#include "nn/work.hpp"
#include "terrace/operation.hpp"

namespace terrace {
namespace {

using Kind = Share::Kind;

/// The kernels and tensors of the split graph, as they are made.
class Rewriting {
 public:
  Rewriting(const Graph& graph, const std::vector<Cut>& cuts)
      : from_(graph), kept_(graph.tensors.size()), split_(graph.kernels.size()) {
    for (const Cut& cut : cuts) {
      for (const CutGroup::Kept& kept : cut.group.tensors) kept_[kept.tensor.index] = {&kept, &cut.borders};
      for (const CutGroup::Kernel& member : cut.group.kernels)
        split_[member.kernel.index] = {&member, &cut.borders};
    }
  }

  Graph run() && {
    to_.name = from_.name;
    to_.layers = from_.layers;
    for (const Tensor& tensor : from_.tensors) names_.insert(tensor.name);
    for (std::uint32_t i = 0; i < from_.tensors.size(); ++i) place({i});
    for (const TensorId id : from_.results) to_.results.push_back(places_[id.index][0]);
    for (std::uint32_t k = 0; k < from_.kernels.size(); ++k) {
      const auto [member, borders] = split_[k];
      if (member == nullptr) {
        copy(from_.kernels[k]);
      } else {
        size_bits(from_.kernels[k], member->shares, *borders);
        split(from_.kernels[k], member->shares, *borders);
      }
    }
    return std::move(to_);
  }

 private:
  static std::size_t parts(const Borders& borders) { return borders.size() - 1; }
  /// The shape of one part that is cut along an axis.
  static Shape part_of(Shape shape, std::size_t axis, const Borders& borders, std::size_t part) {
    shape[axis] = borders[part + 1] - borders[part];
    return shape;
  }

  TensorId add(Tensor tensor) {
    to_.tensors.push_back(std::move(tensor));
    return {static_cast<std::uint32_t>(to_.tensors.size() - 1)};
  }

  /// A name that no tensor has.
  std::string part_name(const std::string& whole, std::size_t part) {
    std::string name = fmt::format("{}/{}", whole, part);
    while (!names_.insert(name).second) name += "'";
    return name;
  }

  /// The tensor or, where it is kept so, its parts.
  void place(TensorId id) {
    const Tensor& tensor = from_[id];
    const auto [kept, borders] = kept_[id.index];
    auto& places = places_.emplace_back();
    if (kept == nullptr) {
      places.push_back(add(tensor));
      return;
    }
    for (std::size_t part = 0; part < parts(*borders); ++part) {
      Tensor cut = tensor;
      cut.name = part_name(tensor.name, part);
      cut.shape = part_of(tensor.shape, kept->share.axis, *borders, part);
      cut.bytes = size_of(cut.type) * static_cast<std::uint64_t>(cut.shape.elements());
      if (tensor.persistent) cut.part_of = PartOf{tensor.name, (*borders)[part], tensor.shape[0]};
      places.push_back(add(std::move(cut)));
    }
  }

  /// How large the parts of a mask are, the kernel that writes it says.
  void size_bits(const Kernel& kernel, const Shares& shares, const Borders& borders) {
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
      if (shares.outputs[i].kind != Kind::bits) continue;
      for (std::size_t part = 0; part < parts(borders); ++part) {
        Tensor& bits = to_[places_[kernel.outputs[i].tensor.index][part]];
        const Shape image = part_of(kernel.inputs[0].shape, shares.inputs[0].axis, borders, part);
        bits.shape = {(image.elements() + 7) / 8};
        bits.bytes = {static_cast<std::uint64_t>(bits.shape.elements())};
      }
    }
  }

  void emit(Kernel kernel) {
    count_work(to_, kernel);
    to_.kernels.push_back(std::move(kernel));
  }

  void copy(Kernel kernel) {
    for (auto* operands : {&kernel.inputs, &kernel.outputs}) {
      for (Operand& operand : *operands) operand.tensor = places_[operand.tensor.index][0];
    }
    to_.kernels.push_back(std::move(kernel));
  }

  Operand whole(const Operand& operand) const {
    return {places_[operand.tensor.index][0], operand.shape, {}, {}};
  }

  /// Memory for part of an operand that is not itself kept in parts.
  Operand piece_of(const Operand& operand, const Shape& shape, std::size_t part) {
    Tensor piece = from_[operand.tensor];
    piece.name = part_name(piece.name, part);
    piece.shape = shape;
    piece.bytes = size_of(piece.type) * static_cast<std::uint64_t>(shape.elements());
    piece.persistent = false;
    piece.initial = {};
    if (piece.kind == TensorKind::input || piece.kind == TensorKind::weight)
      piece.kind = TensorKind::activation;
    return {add(std::move(piece)), shape, {}, {}};
  }

  using Pieces = std::vector<Operand>;

  Pieces pieces_of(const Operand& operand, std::size_t axis, const Borders& borders) {
    Pieces pieces;
    for (std::size_t part = 0; part < parts(borders); ++part)
      pieces.push_back(piece_of(operand, part_of(operand.shape, axis, borders, part), part));
    return pieces;
  }

  /// A kernel that belongs where `of` does.
  static Kernel beside(const Kernel& of, Operation operation, const OperationAttributes& attributes,
                       std::string name) {
    Kernel kernel;
    kernel.name = std::move(name);
    kernel.operation = to_string(operation);
    kernel.attributes = to_attributes(attributes);
    kernel.layer = of.layer;
    kernel.phase = of.phase;
    return kernel;
  }

  Pieces cut_out(const Kernel& of, const Operand& operand, std::int64_t axis, const Borders& borders) {
    Kernel kernel = beside(of, Operation::concat_backward, ConcatAttributes{axis},
                           fmt::format("{}: cuts {}", of.name, from_[operand.tensor].name));
    kernel.inputs = {whole(operand)};
    kernel.outputs = pieces_of(operand, static_cast<std::size_t>(axis), borders);
    Pieces pieces = kernel.outputs;
    emit(std::move(kernel));
    return pieces;
  }

  void join(const Kernel& of, const Pieces& pieces, std::int64_t axis, const Operand& operand) {
    Kernel kernel = beside(of, Operation::concat, ConcatAttributes{axis},
                           fmt::format("{}: joins {}", of.name, from_[operand.tensor].name));
    kernel.inputs = pieces;
    kernel.outputs = {whole(operand)};
    emit(std::move(kernel));
  }

  /// A kernel on its way into parts: what is cut out before and joined after, and the sums so far.
  struct Work {
    const Kernel& kernel;
    const Shares& shares;
    const Borders& borders;
    std::vector<Pieces> in, out;
    Pieces sums;
  };

  void split(const Kernel& kernel, const Shares& shares, const Borders& borders) {
    Work work{kernel, shares, borders, {}, {}, Pieces(kernel.outputs.size())};
    work.in.resize(kernel.inputs.size());
    work.out.resize(kernel.outputs.size());
    for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
      const Share share = shares.inputs[i];
      if (share.kind == Kind::cut) work.in[i] = cut_out(kernel, kernel.inputs[i], share.axis, borders);
    }
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
      const Share share = shares.outputs[i];
      if (share.kind == Kind::cut) work.out[i] = pieces_of(kernel.outputs[i], share.axis, borders);
    }
    for (std::size_t part = 0; part < parts(borders); ++part) emit_part(work, part);
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
      const Share share = shares.outputs[i];
      if (share.kind == Kind::cut) join(kernel, work.out[i], share.axis, kernel.outputs[i]);
    }
  }

  void emit_part(Work& work, std::size_t part) {
    const auto& [kernel, shares, borders, in, out, sums] = work;
    Kernel one = kernel;
    one.name = fmt::format("{}/{}", kernel.name, part);
    for (std::size_t i = 0; i < kernel.inputs.size(); ++i)
      one.inputs[i] = operand_in(kernel.inputs[i], shares.inputs[i], in[i], {part, borders});
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i)
      one.outputs[i] = operand_in(kernel.outputs[i], shares.outputs[i], out[i], {part, borders});
    look_up(one, borders, part);
    const Pieces made = one.outputs;
    emit(std::move(one));
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (shares.outputs[i].kind == Kind::sum) add_up(work, i, made[i], part);
    }
  }

  struct PartOfKernel {
    std::size_t part;
    const Borders& borders;
  };
  Operand operand_in(const Operand& operand, Share share, const Pieces& pieces, PartOfKernel at) {
    switch (share.kind) {
      case Kind::cut:
        return pieces[at.part];
      case Kind::sum:
        return piece_of(operand, operand.shape, at.part);
      case Kind::kept: {
        const Shape shape = part_of(operand.shape, share.axis, at.borders, at.part);
        return {places_[operand.tensor.index][at.part], shape, {}, {}};
      }
      case Kind::bits: {
        const TensorId id = places_[operand.tensor.index][at.part];
        return {id, to_[id].shape, {}, {}};
      }
      default:
        return whole(operand);
    }
  }

  /// Adds one more summand; the last sum is the tensor itself.
  void add_up(Work& work, std::size_t output, const Operand& summand, std::size_t part) {
    Operand& sum = work.sums[output];
    if (part == 0) {
      sum = summand;
      return;
    }
    Kernel kernel = beside(work.kernel, Operation::add, AddAttributes{},
                           fmt::format("{}: adds {}.{}", work.kernel.name, output, part));
    kernel.inputs = {sum, summand};
    kernel.in_place = {{0, 0}, {1, 0}};
    const Operand& whole_sum = work.kernel.outputs[output];
    // Sums are numbered after the summands.
    const std::size_t last = parts(work.borders) - 1;
    sum = part == last ? whole(whole_sum) : piece_of(whole_sum, whole_sum.shape, last + part);
    kernel.outputs = {sum};
    emit(std::move(kernel));
  }

  /// A part of a table knows which one it is, and all but the first go on with what others looked up.
  static void look_up(Kernel& kernel, const Borders& borders, std::size_t part) {
    const Operation operation = operation_of(kernel);
    const bool embeds = operation == Operation::embedding;
    if (!embeds && operation != Operation::embedding_backward) return;
    kernel.attributes = to_attributes(EmbeddingAttributes{borders[part], borders.back()});
    if (embeds && part > 0) kernel.inputs.push_back(kernel.outputs[0]);
  }

  const Graph& from_;
  Graph to_;
  std::vector<std::pair<const CutGroup::Kept*, const Borders*>> kept_;     ///< by tensor
  std::vector<std::pair<const CutGroup::Kernel*, const Borders*>> split_;  ///< by kernel
  std::vector<std::vector<TensorId>> places_;  ///< of each given tensor: itself or its parts
  std::unordered_set<std::string> names_;
};

}  // namespace

Graph rewritten(const Graph& graph, const std::vector<Cut>& cuts) { return Rewriting(graph, cuts).run(); }

}  // namespace terrace
