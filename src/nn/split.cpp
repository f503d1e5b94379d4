#include "nn/split.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nn/split_rewrite.hpp"

namespace terrace {
namespace {

/// Chooses which kernels are split, and how.
class Splitting {
 public:
  Splitting(const Graph& graph, Bytes limit)
      : graph_(graph), limit_(limit), grouping_(graph, limit), is_split_(graph.kernels.size()) {
    std::vector<std::size_t> readers(graph.tensors.size());
    for (const Kernel& kernel : graph.kernels) {
      for (const Operand& operand : kernel.inputs) ++readers[operand.tensor.index];
    }
    // Results have a reader after the last kernel.
    for (const TensorId result : graph.results) ++readers[result.index];
    for (const Kernel& kernel : graph.kernels) bytes_.push_back(bytes_of(kernel, readers));
  }

  Split run() && {
    for (const KernelId kernel : too_large()) {
      if (!is_split_[kernel.index]) split(kernel);
    }
    const auto kernels = static_cast<std::size_t>(std::count(is_split_.begin(), is_split_.end(), true));
    return {rewritten(graph_, cuts_), kernels, std::move(obstacle_)};
  }

 private:
  /// An output takes over the memory of an input that nobody else reads, in whatever order kernels will run.
  Bytes bytes_of(const Kernel& kernel, const std::vector<std::size_t>& readers) const {
    const Bytes bytes = operand_bytes(graph_, kernel);
    for (const InPlacePair& pair : kernel.in_place) {
      const Operand &in = kernel.inputs[pair.input], &out = kernel.outputs[pair.output];
      const Tensor& tensor = graph_[in.tensor];
      const bool is_ours = !tensor.persistent && tensor.kind != TensorKind::input && in.tensor != out.tensor;
      if (is_ours && readers[in.tensor.index] == 1 && tensor.bytes == graph_[out.tensor].bytes)
        return bytes - tensor.bytes;
    }
    return bytes;
  }

  /// The largest first: it has most to say about how.
  std::vector<KernelId> too_large() const {
    std::vector<std::pair<Bytes, KernelId>> found;
    for (std::uint32_t k = 0; k < graph_.kernels.size(); ++k) {
      if (bytes_[k] > limit_) found.emplace_back(bytes_[k], KernelId{k});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<KernelId> kernels;
    for (const auto& [bytes, kernel] : found) kernels.push_back(kernel);
    return kernels;
  }

  void split(KernelId kernel) {
    std::string reasons;
    for (const Way way : ways(graph_[kernel])) {
      const auto cut = cut_of(kernel, way);
      if (cut) {
        for (const CutGroup::Kernel& member : cut->group.kernels) is_split_[member.kernel.index] = true;
        cuts_.push_back(*cut);
        return;
      }
      if (reasons != cut.error().message) reasons += (reasons.empty() ? "" : ", and ") + cut.error().message;
    }
    if (obstacle_.empty()) obstacle_ = fmt::format("{} was not split: {}", graph_[kernel].name, reasons);
  }

  /// By features first where weights and their gradients are most of it: then they must be cut in any case.
  std::vector<Way> ways(const Kernel& kernel) const {
    Bytes kept{};
    if (const auto shares = shares_of(kernel, Way::features)) {
      for_each_share(kernel, *shares, [&](const Operand& operand, Share share) {
        if (share.kind == Share::Kind::kept) kept += graph_[operand.tensor].bytes;
      });
    }
    if (2 * kept >= operand_bytes(graph_, kernel)) return {Way::features, Way::batch};
    return {Way::batch, Way::features};
  }

  Result<Cut> cut_of(KernelId kernel, Way way) const {
    CutGroup group = grouping_.group_of(kernel, way);
    const auto unsupported = [](std::string why) { return Error{ErrorCode::unsupported, std::move(why)}; };
    if (!group.obstacle.empty()) return unsupported(group.obstacle);
    for (const CutGroup::Kernel& member : group.kernels) {
      if (is_split_[member.kernel.index])
        return unsupported(fmt::format("{} is split already", graph_[member.kernel].name));
    }
    auto borders = borders_of(graph_, group, limit_);
    if (!borders) return borders.error();
    if (borders->size() < 3) return unsupported("there are too few rows");
    return Cut{std::move(group), *std::move(borders)};
  }

  const Graph& graph_;
  Bytes limit_;
  Grouping grouping_;
  std::vector<Bytes> bytes_;  ///< of each kernel's operands
  std::vector<bool> is_split_;
  std::vector<Cut> cuts_;
  std::string obstacle_;
};

}  // namespace

Split split_to_fit(const Graph& graph, Bytes limit) { return Splitting(graph, limit).run(); }

}  // namespace terrace
