// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "plan/verify_state.hpp"

namespace terrace {

void Verification::issue(std::uint32_t lane, const std::vector<std::uint32_t>& after) {
  std::vector<const LaneClocks::Clock*> known;
  for (const std::uint32_t ticket : after) {
    const auto found = ticket_places_.find(ticket);
    if (found == ticket_places_.end()) {
      report(fmt::format("it starts after ticket #{}, which nothing before it has", ticket));
    } else {
      known.push_back(&tickets_[found->second].ended);
    }
  }
  at_work_ = clocks_.issue(lane, known);
  issued_on_[lane].push_back(position_);
}

/// pre: no other instruction has it
void Verification::give_ticket(std::uint32_t ticket) {
  ticket_places_.emplace(ticket, tickets_.size());
  tickets_.push_back({ticket, at_work_, clocks_.ended(at_work_.lane)});
}

void Verification::operator()(const Wait& wait) {
  const auto found = ticket_places_.find(wait.ticket);
  if (found == ticket_places_.end())
    return report(fmt::format("nothing before it has ticket #{}", wait.ticket));
  Ticket& ticket = tickets_[found->second];
  if (ticket.waited) return report(fmt::format("ticket #{} was waited for before", wait.ticket));
  ticket.waited = true;
  clocks_.wait(ticket.ended);
}

std::string Verification::user(LaneEvent event) const {
  const auto* run = std::get_if<Run>(&plan_.instructions[issued_on_[event.lane][event.number - 1]]);
  return run == nullptr ? "a transfer" : fmt::format("kernel {}", graph_[run->kernel].name);
}

std::optional<std::string> Verification::filling(const AbstractRegion& region,
                                                 const LaneClocks::Clock& clock) const {
  if (LaneClocks::is_over(region.writer, clock)) return std::nullopt;
  return user(region.writer) + (clocks_.is_engine(region.writer.lane) ? " writes" : " fills");
}

std::optional<std::string> Verification::reading(TensorId tensor, TierId tier,
                                                 const LaneClocks::Clock& clock) const {
  const auto readers = regions_.readers(tensor, tier);
  for (std::uint32_t lane = 0; lane < readers.size(); ++lane) {
    const LaneEvent reader{lane, readers[lane]};
    if (!LaneClocks::is_over(reader, clock)) return user(reader) + " reads";
  }
  return std::nullopt;
}

}  // namespace terrace
