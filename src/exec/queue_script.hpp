// SPDX-License-Identifier: Apache-2.0
// QueueScript: a plan's instructions as lanes carry them out, with the least waiting that keeps their order.
//
//   lane     the kernels of one engine, or the transfers of one link, in the order of issue. A device lane is
//            a queue of the device; a host lane is a thread, which moves bytes that the device cannot reach
//            by itself or runs kernels of the processor
//   waits    actions of other lanes that must be complete before an action starts, beside those before it on
//            its lane. What another wait implies is left out
//
// An action is behind everything that the plan says is complete when it is issued, and behind the tickets it
// names. Transfers of one link that lie side by side in both tiers, with nothing to wait for in between,
// are one action. Plain data, built once for a plan.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "exec/script.hpp"
#include "mover/device_engine.hpp"

namespace terrace {

/// A kernel on a device's queue.
struct QueueLaunch {
  std::uint32_t engine = 0, kernel = 0, variant = 0;
  std::vector<DeviceAddress> operands;  ///< a workspace that the variant does not need has the address zero
};
/// A kernel on a thread of the host.
struct QueueHostRun {
  std::uint32_t engine = 0, kernel = 0, variant = 0;
  std::vector<std::byte*> operands;
};
/// Copies by a device's queue.
struct QueueCopies {
  Direction direction = Direction::in;
  std::vector<DeviceCopy> copies;  ///< no two of them neighbours
};
/// Moves by a mover.
struct QueueMoves {
  std::vector<Move> moves;
};

struct QueueAction {
  std::uint32_t instruction = 0;         ///< the first of those it carries out
  std::uint32_t lane = 0, position = 0;  ///< positions on a lane are counted from one
  std::vector<std::uint32_t> waits;      ///< actions, by number
  bool is_waited_for = false;
  std::variant<QueueLaunch, QueueHostRun, QueueCopies, QueueMoves> what;
};

struct QueueLane {
  bool on_device = false;
  std::uint32_t actions = 0;
};

struct QueueScript {
  std::vector<QueueLane> lanes;
  std::vector<QueueAction> actions;  ///< in the order of issue
  std::vector<Traffic> moved;        ///< what one step moves over each link
  std::vector<Bytes> peak;           ///< the most bytes of regions at once, by tier
};

/// pre: the verifier accepts the plan; the tiers are those of the machine, of one device alone, and outlive
/// the script
QueueScript resolve_for_queues(const Graph& graph, const Machine& machine, const Plan& plan,
                               const OpenTiers& tiers);

}  // namespace terrace
