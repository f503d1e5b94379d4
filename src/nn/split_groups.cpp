#include "nn/split_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace terrace {
namespace {

using Kind = Share::Kind;

void refuse(CutGroup& group, std::string why) {
  if (group.obstacle.empty()) group.obstacle = std::move(why);
}

const CutGroup::Kept* find(const CutGroup& group, TensorId tensor) {
  const auto found = std::find_if(group.tensors.begin(), group.tensors.end(),
                                  [&](const CutGroup::Kept& kept) { return kept.tensor == tensor; });
  return found == group.tensors.end() ? nullptr : &*found;
}

bool is_along(const Shape& shape, std::size_t axis, std::int64_t rows) {
  return axis < shape.rank() && shape[axis] == rows;
}

/// The extent that is cut, as the kernel's first operand that is cut has it.
std::int64_t rows_of(const Kernel& kernel, const Shares& shares) {
  std::int64_t rows = 0;
  for_each_share(kernel, shares, [&](const Operand& operand, Share share) {
    const bool has_rows = share.kind == Kind::kept || share.kind == Kind::cut;
    if (has_rows && rows == 0 && share.axis < operand.shape.rank()) rows = operand.shape[share.axis];
  });
  return rows;
}

std::string_view what(Way way) { return way == Way::features ? "its weights" : "the batch"; }

}  // namespace

Grouping::Grouping(const Graph& graph, Bytes limit)
    : graph_(graph), limit_(limit), users_(graph.tensors.size()) {
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    for (const auto* operands : {&graph.kernels[k].inputs, &graph.kernels[k].outputs}) {
      for (const Operand& operand : *operands) {
        auto& users = users_[operand.tensor.index];
        if (users.empty() || users.back() != KernelId{k}) users.push_back({k});
      }
    }
  }
}

CutGroup Grouping::group_of(KernelId kernel, Way way) const {
  CutGroup group;
  group.way = way;
  if (const auto shares = shares_of(graph_[kernel], way))
    group.rows = rows_of(graph_[kernel], resolved(*shares, graph_[kernel], way));
  add_kernel(group, kernel);
  for (std::size_t i = 0; i < group.tensors.size(); ++i) {
    for (const KernelId user : users_[group.tensors[i].tensor.index]) add_kernel(group, user);
  }
  for (const CutGroup::Kernel& member : group.kernels) require_fitting(group, member);
  return group;
}

bool Grouping::is_result(TensorId tensor) const {
  return std::find(graph_.results.begin(), graph_.results.end(), tensor) != graph_.results.end();
}

bool Grouping::can_be_kept(TensorId tensor, Way way) const {
  const Shape& shape = graph_[tensor].shape;
  if (graph_[tensor].kind == TensorKind::input || is_result(tensor) || shape.rank() == 0) return false;
  const auto takes_parts = [&](KernelId user) {
    const auto shares = shares_of(graph_[user], way);
    bool takes = shares.has_value();
    if (!takes) return false;
    for_each_share(graph_[user], *shares, [&](const Operand& operand, Share share) {
      if (operand.tensor != tensor) return;
      const bool may_be_parts = share.kind == Kind::either || share.kind == Kind::kept;
      takes = takes && may_be_parts && is_along(operand.shape, share.axis, shape[0]);
    });
    return takes;
  };
  const auto& users = users_[tensor.index];
  return std::all_of(users.begin(), users.end(), takes_parts);
}

/// Keeping parts spares two copies, and is a must where whole and parts would not fit beside each other. But
/// it makes parts of everything around: what is small is rather put together.
Shares Grouping::resolved(Shares shares, const Kernel& kernel, Way way) const {
  const auto resolve = [&](const Operand& operand, Share& share) {
    if (share.kind != Kind::either) return;
    const bool is_large = 4 * graph_[operand.tensor].bytes > limit_;
    share.kind = is_large && can_be_kept(operand.tensor, way) ? Kind::kept : Kind::cut;
  };
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) resolve(kernel.inputs[i], shares.inputs[i]);
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) resolve(kernel.outputs[i], shares.outputs[i]);
  return shares;
}

void Grouping::add_kernel(CutGroup& group, KernelId id) const {
  const auto is_same = [&](const CutGroup::Kernel& member) { return member.kernel == id; };
  if (std::any_of(group.kernels.begin(), group.kernels.end(), is_same)) return;
  const Kernel& kernel = graph_[id];
  const auto shares = shares_of(kernel, group.way);
  if (!shares) {
    return refuse(group,
                  fmt::format("{} cannot be worked on in parts of {}", kernel.operation, what(group.way)));
  }
  group.kernels.push_back({id, resolved(*shares, kernel, group.way)});
  const Shares chosen = group.kernels.back().shares;
  for_each_share(kernel, chosen, [&](const Operand& operand, Share share) {
    if (share.kind == Kind::kept || share.kind == Kind::bits) keep(group, operand, share);
  });
}

void Grouping::keep(CutGroup& group, const Operand& operand, Share share) const {
  if (find(group, operand.tensor) != nullptr) return;
  group.tensors.push_back({operand.tensor, share});
  const Tensor& tensor = graph_[operand.tensor];
  if (tensor.kind == TensorKind::input || tensor.part_of || is_result(operand.tensor))
    refuse(group, fmt::format("{} is wanted whole", tensor.name));
  if (share.kind == Kind::kept && !is_along(tensor.shape, share.axis, group.rows))
    refuse(group,
           fmt::format("{} of shape {} has no {} rows", tensor.name, to_string(tensor.shape), group.rows));
}

/// What is kept in parts must be so for everybody, and be seen along the axis that is cut.
void Grouping::require_fitting(CutGroup& group, const CutGroup::Kernel& member) const {
  const Kernel& kernel = graph_[member.kernel];
  for_each_share(kernel, member.shares, [&](const Operand& operand, Share share) {
    const Tensor& tensor = graph_[operand.tensor];
    const bool has_parts = share.kind == Kind::kept || share.kind == Kind::bits;
    const CutGroup::Kept* kept = find(group, operand.tensor);
    if (has_parts != (kept != nullptr) || (has_parts && kept->share.axis != share.axis))
      return refuse(group, fmt::format("{} would be cut in two ways", tensor.name));
    const bool is_seen_along = is_along(operand.shape, share.axis, group.rows) &&
                               (share.axis == 0 || operand.shape == tensor.shape || share.kind == Kind::cut);
    if ((share.kind == Kind::kept || share.kind == Kind::cut) && !is_seen_along)
      refuse(group, fmt::format("{} sees {} as {}", kernel.name, tensor.name, to_string(operand.shape)));
  });
}

}  // namespace terrace
