// A trainer with several graphs of one network, for inputs that change in size.
#include <fmt/format.h>

#include <unordered_map>

#include "base/check.hpp"
#include "exec/initialise.hpp"
#include "exec/packed_plan.hpp"
#include "exec/trainer_state.hpp"

namespace terrace {
namespace {

using Named = std::unordered_map<std::string_view, const Tensor*>;

bool is_state(const Tensor& tensor) { return tensor.persistent && !is_constant(tensor); }

Named state_by_name(const Graph& graph) {
  Named named;
  for (const Tensor& tensor : graph.tensors) {
    if (is_state(tensor)) named[tensor.name] = &tensor;
  }
  return named;
}

/// Layouts may differ: what goes over is the value.
bool holds_the_same(const Tensor& a, const Tensor& b) {
  return a.kind == b.kind && a.type == b.type && a.shape == b.shape;
}

Error other_state(const std::string& difference) {
  return {ErrorCode::invalid_argument,
          difference + ": a trainer changes between graphs of one network, with one optimizer"};
}

std::string described(const Tensor& tensor) {
  return fmt::format("a {} of {} {}", to_string(tensor.kind), to_string(tensor.type),
                     to_string(tensor.shape));
}

Result<void> require_same_state(const Graph& trained, const Graph& added) {
  Named missing = state_by_name(trained);
  for (const Tensor& tensor : added.tensors) {
    if (!is_state(tensor)) continue;
    const auto found = missing.find(tensor.name);
    if (found == missing.end()) {
      return other_state(
          fmt::format("tensor {} of {} is not in the graph that is trained", tensor.name, added.name));
    }
    if (!holds_the_same(tensor, *found->second)) {
      return other_state(fmt::format("tensor {} of {} is {}, and {} in the graph that is trained",
                                     tensor.name, added.name, described(tensor), described(*found->second)));
    }
    missing.erase(found);
  }
  for (const Tensor& tensor : trained.tensors) {
    if (missing.contains(tensor.name)) {
      return other_state(
          fmt::format("tensor {} of the graph that is trained is not in {}", tensor.name, added.name));
    }
  }
  return {};
}

Result<void> require_threads(const Program& present, const Program& added) {
  if (present.threads == added.threads) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} was compiled for {} threads and training has {}: compile it for as many",
                           added.graph.name, added.threads, present.threads)};
}

}  // namespace

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
