// Records the allocations of training steps: bench_record_trace MODEL BATCH STEPS FILE.
//
// The trainer runs the steps on this computer. Its tensors lie in one packed arena, but the plan that it
// executes says when each one begins and ends; these events, in the order in which the step passed them, are
// what an allocator would be asked for. Persistent tensors live through all steps; an input begins before its
// step, and a result ends after its step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <string>
#include <variant>

#include "exec/packed_plan.hpp"
#include "terrace/models.hpp"
#include "terrace/trainer.hpp"
#include "traces/trace.hpp"

namespace terrace::bench {
namespace {

constexpr unsigned kThreads = 2;

/// Turns regions that begin and end into the events of a trace; a tensor's index is its block's id.
class Recorder {
 public:
  explicit Recorder(const Graph& graph) : graph_(graph), live_(graph.tensors.size()) {
    trace_.ids = static_cast<std::uint32_t>(graph.tensors.size());
  }
  void allocate(TensorId id) {
    const Bytes bytes = graph_[id].bytes;
    if (bytes.count == 0 || live_[id.index]) return;
    live_[id.index] = true;
    trace_.events.push_back({id.index, bytes.count});
  }
  void free(TensorId id) {
    if (!live_[id.index]) return;
    live_[id.index] = false;
    trace_.events.push_back({id.index, 0});
  }
  Trace finish(std::string name) {
    for (std::uint32_t i = 0; i < live_.size(); ++i) free({i});
    trace_.name = std::move(name);
    return std::move(trace_);
  }

 private:
  const Graph& graph_;
  std::vector<bool> live_;
  Trace trace_;
};

void fill_inputs(Trainer& trainer, const Graph& graph) {
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::input || tensor.persistent) continue;
    if (tensor.type == DataType::f32) {
      for (float& value : trainer.input(tensor.name)) value = 0.5F;
    } else {
      for (std::int32_t& value : trainer.integer_input(tensor.name)) value = 0;
    }
  }
}

/// Returns the instructions of a step in the order in which the executed step passed them.
std::vector<std::size_t> executed_order(const Plan& plan, const Timeline& timeline) {
  if (timeline.instructions.size() != plan.instructions.size())
    throw std::logic_error("the step did not execute the program's plan");
  std::vector<std::size_t> order(plan.instructions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return timeline.instructions[a].begin < timeline.instructions[b].begin;
  });
  return order;
}

Trace record(const std::string& model, std::int64_t batch, int steps) {
  ModelOptions options;
  options.batch = batch;
  Program program = compile(build_model(model, options).value(), kThreads).value();
  const Plan plan = packed_plan(program);
  Trainer trainer = Trainer::start(std::move(program), {.seed = 1, .learning_rate = 0.001F}).value();
  const Graph& graph = trainer.program().graph;
  Recorder recorder(graph);
  for (int step = 0; step < steps; ++step) {
    for (const Alloc& region : plan.start) recorder.allocate(region.tensor);
    fill_inputs(trainer, graph);
    trainer.step();
    for (const std::size_t i : executed_order(plan, trainer.timeline())) {
      if (const auto* begins = std::get_if<Alloc>(&plan.instructions[i])) recorder.allocate(begins->tensor);
      if (const auto* ends = std::get_if<Free>(&plan.instructions[i])) recorder.free(ends->tensor);
    }
    for (const TensorId result : graph.results) recorder.free(result);
  }
  return recorder.finish(
      fmt::format("training: {}, batch {}, {} steps, recorded by bench_record_trace with {} threads", model,
                  batch, steps, kThreads));
}

}  // namespace
}  // namespace terrace::bench

int main(int count, char** words) {
  if (count != 5) {
    fmt::print(stderr, "usage: bench_record_trace MODEL BATCH STEPS FILE\n");
    return 2;
  }
  try {
    const terrace::bench::Trace trace =
        terrace::bench::record(words[1], std::stoll(words[2]), std::stoi(words[3]));
    terrace::bench::write_trace(trace, words[4]);
    fmt::print("{} events, peak {}\n", trace.events.size(),
               terrace::readable(terrace::Bytes{terrace::bench::peak_live(trace)}));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_record_trace: {}\n", error.what());
    return 1;
  }
}
