// SPDX-License-Identifier: Apache-2.0
#include "terrace/trainer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <random>

#include "base/affinity.hpp"
#include "base/check.hpp"
#include "base/system.hpp"
#include "exec/access_count.hpp"
#include "exec/initialise.hpp"
#include "exec/packed_plan.hpp"
#include "graph/parts.hpp"
#include "train/trainer_state.hpp"

namespace terrace {
namespace {

std::byte* input_memory(const Graph& graph, const Store& store, TensorId id,
                        std::optional<DataType> type = std::nullopt) {
  const Tensor& tensor = graph[id];
  check(tensor.kind == TensorKind::input && !tensor.persistent && tensor.type == type.value_or(tensor.type),
        "the graph has an input of that name and type");
  std::byte* memory = store.memory(id);
  check(memory != nullptr, "the plan keeps a place for the input");
  return memory;
}

/// Kernels were prepared for a number of threads, which decides the order of some sums: with another one a
/// run beside others would not have the bits of a run alone.
Result<void> require_engines(const Program& program, const Plan& plan, const Machine& machine) {
  if (has_one_lane(plan)) return {};
  for (std::uint32_t i = 0; i < machine.engine_count(); ++i) {
    const Compute& engine = machine.compute_of({i});
    if (engine.threads == program.threads) continue;
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{} was compiled for {} threads, and engine {} of {} has {}: give all engines the "
                    "threads that kernels are compiled for",
                    program.graph.name, program.threads, engine.name, machine.name, engine.threads)};
  }
  return {};
}

/// Gives each engine its own cores, and its thread a team of its own. Where the computer has fewer cores than
/// all engines together have threads, they share them.
void enter_engine(const Backend& backend, EngineId engine, unsigned threads, unsigned cores) {
  if (cores <= probe_cores().usable()) stay_on_cores(engine.index * threads, threads);
  backend.use_threads(threads);
}

}  // namespace

Result<void> require_fitting(const Program& program, const Plan& plan, const Machine& machine) {
  if (plan.graph != fingerprint(program.graph)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the plan was made for another graph than {} as it is compiled here: plan again "
                             "with the same model, batch and number of threads",
                             program.graph.name)};
  }
  if (plan.machine != fingerprint(machine) || plan.budget.size() != machine.tiers.size()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the plan was made for another machine than {}: plan again", machine.name)};
  }
  return require_engines(program, plan, machine);
}

Result<void> require_room(const OpenTiers& tiers, const std::vector<Bytes>& budget, const Machine& machine) {
  for (std::uint32_t i = 0; i < budget.size(); ++i) {
    const Bytes open = tiers.is_open({i}) ? tiers[{i}].description().capacity : Bytes{0};
    if (budget[i] <= open) continue;
    return Error{ErrorCode::too_large,
                 fmt::format("the plan needs {} of {} and {} are open: plan within that, or start again",
                             readable(budget[i]), machine.tiers[i].name, readable(open))};
  }
  return {};
}

std::filesystem::path state_file(const std::filesystem::path& folder) {
  return folder / fmt::format(".terrace-state-{}-{:08x}", getpid(), std::random_device()());
}

void take_back(Trainer& trainer, const std::filesystem::path& file, const std::function<void()>& before) {
  try {
    before();
    trainer.load_checkpoint(file).value();
  } catch (const std::exception& error) {
    throw EnvironmentError(fmt::format("{}; {} holds the state after step {}", error.what(), file.native(),
                                       trainer.steps_done()),
                           {"", file.native(), 0, 0});
  }
  std::error_code left;
  std::filesystem::remove(file, left);
}

TensorId Trainer::State::find(std::string_view name) const {
  const TensorId id = find_tensor(graph(), name);
  check(static_cast<bool>(id), "there is a tensor of that name");
  return id;
}

std::vector<TensorId> Trainer::State::find_persistent(std::string_view name) const {
  std::vector<TensorId> parts = find_parts(graph(), name);
  check(!parts.empty() && graph()[parts[0]].persistent, "a tensor of that name outlives steps");
  return parts;
}

std::size_t Trainer::State::elements(const std::vector<TensorId>& tensors) const {
  std::int64_t sum = 0;
  for (const TensorId id : tensors) sum += graph()[id].shape.elements();
  return static_cast<std::size_t>(sum);
}

void ReadyGraph::follow(const Plan& plan, const Machine& machine, const OpenTiers& tiers) {
  auto new_store = std::make_unique<Store>(*program.backend, program.graph, machine, plan, tiers);
  const auto enter = [backend = program.backend, threads = program.threads,
                      cores = program.threads * static_cast<unsigned>(machine.engine_count())](
                         EngineId engine) { enter_engine(*backend, engine, threads, cores); };
  auto new_runner =
      std::make_unique<Runner>(resolve(program.graph, machine, plan, tiers), plan.instructions.size(), tiers,
                               kernels, LaneOptions{enter, {}});
  auto new_kept = kept_tensors(program.graph, plan);
  // All of them or none: they belong to one plan.
  store = std::move(new_store);
  runner = std::move(new_runner);
  kept = std::move(new_kept);
}

void Trainer::State::require_sound() const {
  if (failure) throw EnvironmentError(*failure);
}

void Trainer::State::fail(const char* reason, EnvironmentError::Place place) {
  failure.emplace(fmt::format("step {} of {} did not complete, and its tensors may be of two steps; load a "
                              "checkpoint or start again: {}",
                              steps, graph().name, reason),
                  std::move(place));
}

void Trainer::State::step(AccessCount* count) {
  require_sound();
  try {
    if (count == nullptr) {
      now().runner->step(context(), saving.get());
    } else {
      wait_for_checkpoint();  // its writer cannot read pages that are watched
      now().runner->counted_step(context(), *count);
    }
  } catch (const EnvironmentError& error) {
    fail(error.what(), error.place());
    throw;
  } catch (const std::exception& error) {
    fail(error.what(), {});
    throw;
  }
  ++steps;
}

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

Result<Trainer> Trainer::start(Program program, const TrainerOptions& options) {
  const Plan plan = packed_plan(program);
  const Machine machine = one_memory(program);
  return start(std::move(program), plan, machine, options);
}

Result<Trainer> Trainer::start(Program program, const VerifiedPlan& plan, const Machine& machine,
                               const TrainerOptions& options) {
  if (const auto fits = require_fitting(program, plan.plan(), machine); !fits) return fits.error();
  return start(std::move(program), plan.plan(), machine, options);
}

Result<Trainer> Trainer::start(Program program, const Plan& plan, const Machine& machine,
                               const TrainerOptions& options) {
  auto tiers = OpenTiers::open({program.graph.name, machine, plan.budget, options.open});
  if (!tiers) return tiers.error();
  auto state = std::make_unique<State>();
  program.backend->use_threads(program.threads);
  state->options = options;
  state->tiers = std::move(*tiers);
  state->graphs.push_back(std::make_unique<ReadyGraph>(std::move(program)));
  state->now().follow(plan, machine, state->tiers);
  initialise(state->graph(), options.seed, *state->now().store);
  return Trainer(std::move(state));
}

Result<void> Trainer::change_plan(const VerifiedPlan& plan, const Machine& machine,
                                  const std::filesystem::path& folder) {
  if (const auto fits = require_fitting(program(), plan.plan(), machine); !fits) return fits;
  if (const auto fits = require_room(state_->tiers, plan->budget, machine); !fits) return fits;
  if (const auto before = finish_checkpoint(); !before) return before;
  const auto file = state_file(folder);
  if (const auto saved = save_checkpoint(file); !saved) return saved;
  state_->fail("its plan was changed in part", {});
  take_back(*this, file, [&] { state_->now().follow(plan.plan(), machine, state_->tiers); });
  return {};
}

const Program& Trainer::program() const { return state_->now().program; }
std::uint64_t Trainer::steps_done() const { return state_->steps; }
float Trainer::learning_rate() const { return state_->options.learning_rate; }
void Trainer::set_learning_rate(float rate) { state_->options.learning_rate = rate; }

std::span<float> Trainer::input(std::string_view name) {
  const TensorId id = state_->find(name);
  auto* memory = input_memory(state_->graph(), *state_->now().store, id, DataType::f32);
  return {reinterpret_cast<float*>(memory), static_cast<std::size_t>(state_->graph()[id].shape.elements())};
}

std::span<std::int32_t> Trainer::integer_input(std::string_view name) {
  const TensorId id = state_->find(name);
  auto* memory = input_memory(state_->graph(), *state_->now().store, id, DataType::i32);
  return {reinterpret_cast<std::int32_t*>(memory),
          static_cast<std::size_t>(state_->graph()[id].shape.elements())};
}

std::span<std::byte> Trainer::input_bytes(std::string_view name) {
  const TensorId id = state_->find(name);
  return {input_memory(state_->graph(), *state_->now().store, id),
          row_major_bytes(state_->graph()[id]).count};
}

void Trainer::step() { state_->step(); }

void Trainer::step(std::span<Seconds> times) {
  check(times.size() == state_->now().kernels.size(), "there is one time for each kernel");
  state_->step();
  state_->now().runner->add_times(times);
}

Result<KernelAccesses> Trainer::counted_step() {
  auto count = AccessCount::start(state_->graph());
  if (!count) return count.error();
  state_->step(&*count);
  return count->result();
}

bool Trainer::failed() const { return state_->failure.has_value(); }
const Timeline& Trainer::timeline() const { return state_->now().runner->timeline(); }

std::vector<float> Trainer::result(std::size_t index) const {
  check(index < state_->graph().results.size(), "the graph has that many results");
  state_->require_sound();
  return state_->now().store->read(state_->graph().results[index]);
}

std::vector<std::byte> Trainer::result_bytes(std::size_t index) const {
  check(index < state_->graph().results.size(), "the graph has that many results");
  state_->require_sound();
  return state_->now().store->read_bytes(state_->graph().results[index]);
}

std::vector<std::byte> Trainer::read_bytes(std::string_view name) const {
  std::vector<std::byte> values;
  state_->require_sound();
  for (const TensorId id : state_->find_persistent(name)) {
    const std::vector<std::byte> part = state_->now().store->read_bytes(id);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

void Trainer::write_bytes(std::string_view name, std::span<const std::byte> values) {
  const std::vector<TensorId> parts = state_->find_persistent(name);
  std::size_t all = 0;
  for (const TensorId id : parts) all += row_major_bytes(state_->graph()[id]).count;
  check(values.size() == all, "a persistent tensor is written whole");
  state_->require_sound();
  state_->wait_for_checkpoint();
  for (const TensorId id : parts) {
    const std::size_t size = row_major_bytes(state_->graph()[id]).count;
    state_->now().store->write_bytes(id, values.first(size));
    values = values.subspan(size);
  }
}

std::vector<float> Trainer::read(std::string_view name) const {
  const std::vector<TensorId> parts = state_->find_persistent(name);
  state_->require_sound();
  if (parts.size() == 1) return state_->now().store->read(parts[0]);
  std::vector<float> values;
  values.reserve(state_->elements(parts));
  for (const TensorId id : parts) {
    const std::vector<float> part = state_->now().store->read(id);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

void Trainer::write(std::string_view name, std::span<const float> values) {
  const std::vector<TensorId> parts = state_->find_persistent(name);
  check(values.size() == state_->elements(parts), "a persistent tensor is written whole");
  state_->require_sound();
  state_->wait_for_checkpoint();
  for (const TensorId id : parts) {
    const std::size_t size = state_->elements({id});
    state_->now().store->write(id, values.first(size));
    values = values.subspan(size);
  }
}

}  // namespace terrace
