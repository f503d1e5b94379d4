#include "nn/split_borders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace terrace {
namespace {

using Kind = Share::Kind;

/// What the parts of one kernel take, and the kernels that cut and join for them.
struct PartBytes {
  Bytes fixed;     ///< of every part
  Bytes all_rows;  ///< of all parts together, shared out by rows
  Bytes beside;    ///< the most that cutting, joining or adding takes

  PartBytes(const Graph& graph, const CutGroup::Kernel& member) {
    std::set<TensorId> seen;
    for_each_share(graph[member.kernel], member.shares, [&](const Operand& operand, Share share) {
      if (!seen.insert(operand.tensor).second) return;
      const Bytes bytes = graph[operand.tensor].bytes;
      const bool is_fixed =
          share.kind == Kind::whole || share.kind == Kind::sum || share.kind == Kind::filled;
      (is_fixed ? fixed : all_rows) += bytes;
      if (share.kind == Kind::cut || share.kind == Kind::sum) beside = std::max(beside, 2 * bytes);
    });
  }
};

/// Features that the kernels' library likes to take together: a part that ends within them would be padded.
std::int64_t block_of(Way way, std::int64_t rows) {
  if (way == Way::batch) return 1;
  return rows >= 64 ? 64 : rows >= 16 ? 16 : 1;
}

/// The most rows of a part that keep all of the group's kernels within `limit`; 0: no part does.
std::int64_t most_rows(const Graph& graph, const CutGroup& group, Bytes limit) {
  const auto rows = static_cast<std::uint64_t>(std::max<std::int64_t>(group.rows, 1));
  std::uint64_t most = rows;
  for (const CutGroup::Kernel& member : group.kernels) {
    const PartBytes bytes(graph, member);
    if (bytes.fixed >= limit) return 0;
    const std::uint64_t of_one = std::max<std::uint64_t>((bytes.all_rows.count + rows - 1) / rows, 1);
    most = std::min(most, (limit - bytes.fixed).count / of_one);
  }
  const auto found = static_cast<std::int64_t>(most);
  const std::int64_t block = block_of(group.way, found);
  return found / block * block;
}

Result<void> require_room_beside(const Graph& graph, const CutGroup& group, Bytes limit) {
  for (const CutGroup::Kernel& member : group.kernels) {
    const PartBytes bytes(graph, member);
    if (bytes.beside <= limit && bytes.fixed < limit) continue;
    return Error{ErrorCode::too_large,
                 fmt::format("{} in parts still takes {} at once", graph[member.kernel].name,
                             readable(std::max(bytes.beside, bytes.fixed)))};
  }
  return {};
}

}  // namespace

Result<Borders> borders_of(const Graph& graph, const CutGroup& group, Bytes limit) {
  if (auto room = require_room_beside(graph, group, limit); !room) return room.error();
  std::int64_t rows = most_rows(graph, group, limit / 2);
  if (rows == 0) rows = most_rows(graph, group, limit);
  if (rows == 0) {
    return Error{ErrorCode::too_large, fmt::format("the smallest part of {} is too large still",
                                                   graph[group.kernels.front().kernel].name)};
  }
  const std::int64_t parts = (group.rows + rows - 1) / rows;
  const std::int64_t even = (group.rows + parts - 1) / parts, block = block_of(group.way, rows);
  const std::int64_t step = std::min(rows, (even + block - 1) / block * block);
  Borders borders;
  for (std::int64_t first = 0; first < group.rows; first += step) borders.push_back(first);
  borders.push_back(group.rows);
  return borders;
}

Bytes operand_bytes(const Graph& graph, const Kernel& kernel) {
  std::set<TensorId> seen;
  Bytes sum{};
  for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
    for (const Operand& operand : *operands) {
      if (seen.insert(operand.tensor).second) sum += graph[operand.tensor].bytes;
    }
  }
  return sum;
}

}  // namespace terrace
