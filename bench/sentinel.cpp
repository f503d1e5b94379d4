// SPDX-License-Identifier: Apache-2.0
// Claim: with a fifth of the memory a training step needs, plans of our extended Sentinel are nearly as fast
// as with all of it, and faster than the improved active list.
//
//   bench/run sentinel [--quick] [--only PART[,PART...]]
//
// The papers' networks are simulated on the papers' machines; the last two parts train small batches on
// emulated memory. `sentinel` is our extended planner; rows `as published` follow the papers alone.
//
//   figure10  share of fast-only speed at 20%: 000 Fig. 10, 002 Fig. 4.7
//   losses    where its plans lose time
//   large     large batches: 002 Fig. 4.8
//   figure11  without the reserve, grouping, trial
//   lowered11 the same with the kernels and workspaces that this processor has
//   layout    groups of every size and a reserve in one piece (002 section 4.4.2 and 4.4.3)
//   traffic   what is moved, and what kernels use of both memories: 002 Table 4.4, Fig. 4.9
//   figure7   lengths of intervals, and how they begin (Fig. 8)
//   figure12  fast memory from 10% to 60%
//   figure13  least fast memory of ResNets
//   table3    steps for profiling and trial
//   planning  seconds to plan 10,000 kernels
//   executed-numa, executed-optane  figure10 carried out; wants a quiet computer
//   where     where executed steps lose what was not predicted
//   beside    why transfers that were predicted to be hidden are waited for
//   executed11  figure11 carried out
//   executed-autotm  AutoTM's plans beside Sentinel's, carried out, and how far predictions are off (001 Fig.
//   11)
#include <cmath>
#include <functional>

#include "sentinel_ablations.hpp"
#include "sentinel_beside.hpp"
#include "sentinel_executed.hpp"
#include "sentinel_losses.hpp"
#include "sentinel_memory.hpp"
#include "sentinel_traffic.hpp"
#include "sentinel_where.hpp"

namespace terrace::bench {
namespace {

struct Request {
  std::string program;
  bool quick = false;
  std::string only;  ///< with commas between and around them; empty means all
};

struct Section {
  std::string name;
  std::function<json(bool quick)> run;
};

std::vector<Section> sections(const std::string& program) {
  return {{"figure10", figure10},
          {"losses", [](bool quick) { return losses(quick); }},
          {"large", large},
          {"figure11", [](bool quick) { return figure11(quick, GraphOf::operations); }},
          {"lowered11", [](bool quick) { return figure11(quick, GraphOf::kernels); }},
          {"layout", layout},
          {"traffic", traffic},
          {"figure7", figure7},
          {"figure12", figure12},
          {"figure13", figure13},
          {"table3", table3},
          {"planning", planning},
          {"executed-numa", [program](bool quick) { return executed(program, kNuma, quick); }},
          {"executed-optane", [program](bool quick) { return executed(program, kOptane, quick); }},
          {"where", executed_where},
          {"beside", executed_beside},
          {"executed11", [program](bool quick) { return executed11(program, quick); }},
          {"executed-autotm", [program](bool quick) { return executed_autotm(program, quick); }}};
}

/// Returns the speed of sentinel over active-list for every model on optane-sentinel.
std::vector<double> gains(const json& rows) {
  std::vector<double> all;
  for (const json& row : rows) {
    const json &ours = row["speed"]["sentinel+"], &theirs = row["speed"]["active-list"];
    if (row["machine"] == kOptane && !ours.is_null() && !theirs.is_null())
      all.push_back(ours.get<double>() / theirs.get<double>());
  }
  return all;
}

void run(const Request& request) {
  json details = json::object();
  for (const Section& section : sections(request.program)) {
    if (!request.only.empty() && request.only.find("," + section.name + ",") == std::string::npos) continue;
    details[section.name] = section.run(request.quick);
  }
  if (details.empty()) throw std::runtime_error("there is no such part: see the list in bench/sentinel.cpp");
  const auto gained = details.contains("figure10") ? gains(details["figure10"]) : std::vector<double>{};
  print_result("speed of sentinel over active-list, simulated at 20% on optane-sentinel, median over models",
               "1.18 to 1.37, and 91% to 100% of fast-only speed", gained.empty() ? NAN : median(gained),
               gained.empty() ? json(nullptr) : spread(gained), details);
}

Request request_of(const std::string& program, const std::vector<std::string>& arguments) {
  Request request{program, false, {}};
  read_options(arguments, {{"--quick", [&] { request.quick = true; }}},
               {{"--only PART,PART", [&](const std::string& parts) { request.only = "," + parts + ","; }}});
  return request;
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  using namespace terrace::bench;
  return contender_main(
      argc, argv, [argv](const std::vector<std::string>& arguments) { run(request_of(argv[0], arguments)); });
}
