// SPDX-License-Identifier: Apache-2.0
// Script: a plan's instructions as a trainer carries them out: everything looked up, nothing left to decide.
// Alloc and free have no part in it, for offsets are settled. To carry out all actions in their order, one
// after the other, is always right; `lanes` says what may happen beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "exec/residence.hpp"

namespace terrace {

/// What a kernel touches in a tier of declared rates, which holds it up for as long as these ask for.
struct Charge {
  Tier* tier = nullptr;
  Bytes read, written;
};

struct RunAction {
  std::uint32_t kernel = 0, variant = 0;
  std::vector<std::byte*> operands;  ///< a workspace that the variant does not need is null, and so is
                                     ///< what the host has no address of
  std::vector<std::optional<TierAddress>> places;  ///< of the operands; none: not needed
  std::vector<Bytes> regions;                      ///< how much memory from there on is the operand's own
  std::vector<Charge> charges;
};

/// Starts a transfer. Slots number the transfers of a step.
struct CopyAction {
  std::uint32_t slot = 0;
  std::vector<Move> moves;
};

struct WaitAction {
  static constexpr std::uint32_t kNothing = ~std::uint32_t{0};
  std::uint32_t slot = 0;  ///< kNothing: the ticket is that of a run
  std::uint32_t copy = 0;  ///< the instruction that started it
  /// Transfers of the same link that were started before and not waited for: they are complete, too.
  std::vector<WaitAction> earlier = {};
};

/// The first `number` actions of a lane are complete.
struct LaneCount {
  std::uint32_t lane = 0, number = 0;
};

struct Action {
  std::uint32_t instruction = 0;
  std::variant<RunAction, CopyAction, WaitAction> what;
  LaneCount place = {};               ///< its lane and number there; of a wait: what it waits for
  bool beside = false;                ///< the next action is issued at once
  std::vector<LaneCount> after = {};  ///< complete before it starts
};

/// The queue of an engine or a link. Lane 0 issues the actions, and runs kernels of engine 0 itself where
/// none of them has a ticket.
struct ScriptLane {
  std::optional<EngineId> engine = {};      ///< none: a link, or lane 0 where it runs no kernels
  std::vector<std::uint32_t> actions = {};  ///< in their order; of lane 0: none
  bool is_link = false;
  bool holds = false;  ///< a link, some of whose transfers start after something
};

struct Script {
  std::vector<Action> actions;
  std::vector<ScriptLane> lanes;  ///< empty: the plan has one lane
  std::uint32_t slots = 0;
  std::vector<Traffic> moved;  ///< what one step moves over each link
  std::vector<Bytes> peak;     ///< the most bytes of regions at once, by tier
};

/// pre: the verifier accepts the plan; the tiers are those of the machine, and outlive the script
Script resolve(const Graph& graph, const Machine& machine, const Plan& plan, const OpenTiers& tiers);

}  // namespace terrace
