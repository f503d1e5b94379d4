#include "exec/script.hpp"

#include <algorithm>
#include <unordered_map>

#include "graph/variant.hpp"

namespace terrace {
namespace {

class Resolver {
 public:
  Resolver(const Graph& graph, const Machine& machine, const Plan& plan, const OpenTiers& tiers)
      : graph_(graph), plan_(plan), tiers_(tiers), residence_(graph, machine, plan) {}

  Script run() && {
    for (; position_ < plan_.instructions.size(); ++position_) {
      const Instruction& instruction = plan_.instructions[position_];
      std::visit([this](const auto& one) { add(one); }, instruction);
      residence_.apply(instruction);
    }
    script_.slots = static_cast<std::uint32_t>(transfers_.size());
    script_.peak = residence_.peak();
    return std::move(script_);
  }

 private:
  void add(const Alloc&) {}
  void add(const Free&) {}

  void add(const Run& run) {
    const Kernel& kernel = graph_[run.kernel];
    RunAction action{run.kernel.index, run.variant, {}, {}, {}};
    auto tier = run.tiers.begin();
    for (const Operand& operand : kernel.inputs) use(action, operand.tensor, *tier++, operand.touched, {});
    for (const Operand& operand : kernel.outputs) use(action, operand.tensor, *tier++, {}, operand.touched);
    if (runs_without_workspace(kernel, run.variant)) {
      action.operands.push_back(nullptr);
      action.regions.push_back({});
    } else if (kernel.workspace) {
      const Bytes bytes = graph_[kernel.workspace].bytes;
      use(action, kernel.workspace, *tier++, bytes, bytes);
    }
    put(std::move(action));
  }

  void use(RunAction& action, TensorId tensor, TierId tier, Bytes read, Bytes written) {
    action.operands.push_back(tiers_.at(residence_.address(tensor, tier)));
    action.regions.push_back(residence_.size(tensor, tier));
    Tier& memory = tiers_[tier];
    if (memory.description().read_rate == BytesPerSecond{}) return;
    auto charge = std::find_if(action.charges.begin(), action.charges.end(),
                               [&](const Charge& known) { return known.tier == &memory; });
    if (charge == action.charges.end()) charge = action.charges.insert(charge, Charge{&memory, {}, {}});
    charge->read += read;
    charge->written += written;
  }

  void add(const Copy& copy) {
    CopyAction action{static_cast<std::uint32_t>(transfers_.size()), {}};
    for (const TensorId tensor : copy.tensors) append(action.moves, move_of(tensor, copy.from, copy.to));
    for (const Move& move : action.moves) count(copy.from, copy.to, move.from.bytes);
    transfers_[copy.ticket] = {action.slot, position_};
    put(std::move(action));
  }

  /// Copies cover whole regions, so that disks need not read a block to change a part of it.
  Move move_of(TensorId tensor, TierId from, TierId to) const {
    const Bytes room = residence_.size(tensor, to);
    const Bytes bytes = std::min(residence_.size(tensor, from), room);
    return {tiers_.extent(residence_.address(tensor, from), bytes),
            tiers_.extent(residence_.address(tensor, to), room)};
  }

  static void append(std::vector<Move>& moves, const Move& next) {
    if (moves.empty() || moves.back().from.offset + moves.back().from.bytes.count != next.from.offset ||
        moves.back().to.offset + moves.back().from.bytes.count != next.to.offset) {
      moves.push_back(next);
      return;
    }
    moves.back().to.bytes = moves.back().from.bytes + next.to.bytes;
    moves.back().from.bytes += next.from.bytes;
  }

  void count(TierId from, TierId to, Bytes bytes) {
    const auto link = std::find_if(script_.moved.begin(), script_.moved.end(), [&](const Traffic& traffic) {
      return traffic.from == from && traffic.to == to;
    });
    if (link == script_.moved.end()) {
      script_.moved.push_back({from, to, bytes});
    } else {
      link->bytes += bytes;
    }
  }

  void add(const Wait& wait) {
    const Started& started = transfers_.at(wait.ticket);
    put(WaitAction{started.slot, started.instruction});
  }

  template <class A>
  void put(A action) {
    script_.actions.push_back({position_, std::move(action)});
  }

  struct Started {
    std::uint32_t slot = 0, instruction = 0;
  };

  const Graph& graph_;
  const Plan& plan_;
  const OpenTiers& tiers_;
  Residence residence_;
  std::uint32_t position_ = 0;
  std::unordered_map<std::uint32_t, Started> transfers_;  // by ticket
  Script script_;
};

}  // namespace

Script resolve(const Graph& graph, const Machine& machine, const Plan& plan, const OpenTiers& tiers) {
  return Resolver(graph, machine, plan, tiers).run();
}

}  // namespace terrace
