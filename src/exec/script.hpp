// Script: a plan's instructions as a trainer carries them out: everything looked up, nothing left to decide.
// Alloc and free have no part in it, for offsets are settled.
#pragma once

#include <cstdint>
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
  std::vector<std::byte*> operands;  ///< a workspace that the variant does not need is null
  std::vector<Bytes> regions;        ///< how much memory from there on is the operand's own
  std::vector<Charge> charges;
};

/// Starts a transfer. Slots number the transfers of a step.
struct CopyAction {
  std::uint32_t slot = 0;
  std::vector<Move> moves;
};

struct WaitAction {
  std::uint32_t slot = 0;
  std::uint32_t copy = 0;  ///< the instruction that started it
};

struct Action {
  std::uint32_t instruction = 0;
  std::variant<RunAction, CopyAction, WaitAction> what;
};

struct Script {
  std::vector<Action> actions;
  std::uint32_t slots = 0;
  std::vector<Traffic> moved;  ///< what one step moves over each link
  std::vector<Bytes> peak;     ///< the most bytes of regions at once, by tier
};

/// pre: the verifier accepts the plan; the tiers are those of the machine, and outlive the script
Script resolve(const Graph& graph, const Machine& machine, const Plan& plan, const OpenTiers& tiers);

}  // namespace terrace
