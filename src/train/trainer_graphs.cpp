// SPDX-License-Identifier: Apache-2.0
// A trainer with several graphs of one network, for inputs that change in size and for paths through it.
#include <fmt/format.h>

#include <unordered_map>

#include "base/check.hpp"
#include "exec/initialise.hpp"
#include "exec/packed_plan.hpp"
#include "graph/parts.hpp"
#include "train/trainer_state.hpp"

namespace terrace {
namespace {

/// Returns what a graph keeps from step to step, in the graph's order; a tensor that is kept in parts counts
/// as one.
std::vector<WholeTensor> state_of(const Graph& graph) {
  std::vector<WholeTensor> state = whole_tensors(graph);
  std::erase_if(state, [&](const WholeTensor& whole) { return is_constant(graph[whole.parts.front()]); });
  return state;
}

using Named = std::unordered_map<std::string_view, const WholeTensor*>;

Named by_name(const std::vector<WholeTensor>& state) {
  Named named;
  for (const WholeTensor& whole : state) named[whole.name] = &whole;
  return named;
}

Error other_state(const std::string& difference) {
  return {ErrorCode::invalid_argument,
          difference + ": a trainer changes between graphs of one network, with one optimizer"};
}

/// Describes a tensor by what decides whether another can hold its value. Layouts and parts may differ, since
/// values are carried over.
std::string described(const Graph& graph, const WholeTensor& whole) {
  const Tensor& tensor = graph[whole.parts.front()];
  return fmt::format("a {} of {} {}", to_string(tensor.kind), to_string(tensor.type), to_string(whole.shape));
}

}  // namespace

Result<void> require_same_state(const Graph& trained, const Graph& added) {
  const std::vector<WholeTensor> state = state_of(trained);
  Named missing = by_name(state);
  for (const WholeTensor& whole : state_of(added)) {
    const auto found = missing.find(whole.name);
    if (found == missing.end()) {
      return other_state(
          fmt::format("tensor {} of {} is not in the graph that is trained", whole.name, added.name));
    }
    const std::string here = described(added, whole), there = described(trained, *found->second);
    if (here != there) {
      return other_state(fmt::format("tensor {} of {} is {}, and {} in the graph that is trained", whole.name,
                                     added.name, here, there));
    }
    missing.erase(found);
  }
  for (const WholeTensor& whole : state) {
    if (missing.contains(whole.name)) {
      return other_state(
          fmt::format("tensor {} of the graph that is trained is not in {}", whole.name, added.name));
    }
  }
  return {};
}

Graph with_state_of(Graph graph, const Graph& network) {
  const std::vector<WholeTensor> present = state_of(graph);
  const Named named = by_name(present);
  for (const WholeTensor& whole : state_of(network)) {
    if (named.contains(whole.name)) continue;
    for (const TensorId part : whole.parts) {
      check(!find_tensor(graph, network[part].name), "what is added has a name of its own");
      graph.tensors.push_back(network[part]);
    }
  }
  return graph;
}

Result<void> require_threads(const Program& present, const Program& added) {
  if (present.threads == added.threads) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} was compiled for {} threads and training has {}: compile it for as many",
                           added.graph.name, added.threads, present.threads)};
}

Result<std::size_t> Trainer::State::add(Program program, const Plan& plan, const Machine& machine) {
  if (const auto fits = require_threads(now().program, program); !fits) return fits.error();
  if (const auto fits = require_same_state(graph(), program.graph); !fits) return fits.error();
  if (const auto fits = require_room(tiers, plan.budget, machine); !fits) return fits.error();
  auto ready = std::make_unique<ReadyGraph>(std::move(program));
  ready->follow(plan, machine, tiers);
  graphs.push_back(std::move(ready));
  return graphs.size() - 1;
}

Result<std::size_t> Trainer::add_graph(Program program, const VerifiedPlan& plan, const Machine& machine) {
  if (const auto fits = require_fitting(program, plan.plan(), machine); !fits) return fits.error();
  return state_->add(std::move(program), plan.plan(), machine);
}

Result<std::size_t> Trainer::add_graph(Program program) {
  const Plan plan = packed_plan(program);
  const Machine machine = one_memory(program);
  return state_->add(std::move(program), plan, machine);
}

const Program& Trainer::program(std::size_t number) const {
  check(number < state_->graphs.size(), "the trainer has that many graphs");
  return state_->graphs[number]->program;
}

void Trainer::State::begin_moving(std::size_t number) {
  wait_for_checkpoint();
  const ReadyGraph& before = now();
  const ReadyGraph& after = *graphs[number];
  moving = std::make_unique<Relocation>(Relocation::Side{before.program.graph, *before.store},
                                        Relocation::Side{after.program.graph, *after.store}, tiers);
  current = number;
}

void Trainer::State::move() {
  const auto fail_because = [this](const char* reason, EnvironmentError::Place place) {
    failure.emplace(fmt::format("the state of {} after step {} was carried to another graph in part, nothing "
                                "is lost: use that graph again, which goes on; {}",
                                graph().name, steps, reason),
                    std::move(place));
  };
  fail_because("it was broken off", {});
  try {
    moving->run();
  } catch (const EnvironmentError& error) {
    fail_because(error.what(), error.place());
    throw EnvironmentError(*failure);
  }
  mend();
}

void Trainer::use_graph(std::size_t number) {
  check(number < state_->graphs.size(), "the trainer has that many graphs");
  if (state_->moving == nullptr) {
    state_->require_sound();
    if (number == state_->current) return;
    state_->begin_moving(number);
  }
  check(number == state_->current, "what was begun is ended first");
  state_->move();
}

}  // namespace terrace
