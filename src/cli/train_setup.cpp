// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/replace_file.hpp"
#include "base/similar.hpp"
#include "cli/command.hpp"
#include "cli/deadline.hpp"
#include "cli/plan_report.hpp"
#include "cli/train.hpp"
#include "data/safetensors.hpp"
#include "nn/models/sequence.hpp"
#include "terrace/error.hpp"
#include "terrace/operation.hpp"
#include "train/counted_profile.hpp"
#include "train/padded_data.hpp"
#include "train/picture_data.hpp"
#include "train/synthetic_data.hpp"

namespace terrace::cli {
namespace {

/// Returns what is usual for the optimizer: Adam's steps have about the size of the rate whatever the
/// gradient.
float usual_rate(const Graph& graph) {
  for (const Kernel& kernel : graph.kernels) {
    if (operation_of(kernel) == Operation::adam) return 1e-3F;
  }
  return 1e-2F;
}

/// Returns the first extent of a graph file's first input: by custom, how many samples a step takes.
std::int64_t leading_extent(const Graph& graph) {
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::input && tensor.shape.rank() > 0) return tensor.shape[0];
  }
  return 1;
}

std::string models_for_fashion_mnist() {
  std::vector<std::string_view> names;
  for (const ModelInfo& info : models()) {
    const auto graph = build_model(info.name, {.batch = 1});
    if (graph && takes_fashion_mnist(*graph)) names.push_back(info.name);
  }
  return enumerated(names, "or");
}

void check_files(const TrainRequest& request) {
  if (!request.save.empty()) expect(check_replaceable(request.save));
  if (!request.load.empty()) expect(safetensors::read(request.load));
}

void check_data_options(const TrainRequest& request) {
  if (request.evaluate && request.is_file()) {
    throw BadInput(
        fmt::format("--evaluate needs the network without its training, which {} does not hold: name a "
                    "model of the zoo",
                    request.model));
  }
  if (request.data == "fashion-mnist") return;
  if (request.evaluate)
    throw BadInput("--evaluate needs pictures whose classes are known: add --data fashion-mnist");
  if (!request.data_folder.empty()) throw BadInput("--data-folder is of no use without --data fashion-mnist");
}

std::unique_ptr<LabelledImages> pictures_of(const TrainRequest& request, DataSplit split) {
  return std::make_unique<LabelledImages>(expect(request.data_folder.empty()
                                                     ? load_fashion_mnist(split)
                                                     : load_fashion_mnist(split, request.data_folder)));
}

void set_up_pictures(const TrainRequest& request, const Graph& graph, TrainSetup& setup) {
  if (!takes_fashion_mnist(graph)) {
    throw BadInput(
        fmt::format("{} does not take the pictures of fashion-mnist, 28x28 grey in ten classes: train {}, or "
                    "leave out --data",
                    request.model, models_for_fashion_mnist()));
  }
  setup.pictures = pictures_of(request, DataSplit::train);
  if (static_cast<std::uint64_t>(setup.batch) > setup.pictures->count()) {
    throw BadInput(
        fmt::format("a batch of {} asks for more than the {} pictures there are: take a smaller one",
                    setup.batch, setup.pictures->count()));
  }
  if (request.evaluate) setup.test_pictures = pictures_of(request, DataSplit::test);
  setup.data = std::make_unique<PictureData>(graph, *setup.pictures, request.seed);
}

void check_budget_options(const TrainRequest& request) {
  if (!request.fast.empty()) return;
  const auto refuse = [](std::string_view option) {
    throw BadInput(
        fmt::format("{} is of no use without --fast, which says how much memory to train in", option));
  };
  if (!request.slow.empty()) refuse("--slow");
  if (!request.planner.empty()) refuse("--planner");
  if (request.machine != "this") refuse("--machine");
  if (request.same_bits) refuse("--same-bits");
  if (!request.adjust) refuse("--no-adjust");
  if (request.variants != "same-bits") refuse("--variants");
}

void set_up_data(const TrainRequest& request, const Graph& graph, TrainSetup& setup, ProgressLine& line) {
  if (request.data == "fashion-mnist") {
    line.show("reading the pictures");
    set_up_pictures(request, graph, setup);
  } else if (setup.lengths) {
    setup.data = std::make_unique<PaddedData>(graph, request.seed, *setup.lengths,
                                              sequence_axis(request.model).value());
  } else {
    setup.data = std::make_unique<SyntheticData>(graph, request.seed);
  }
}

Trainer start_unlimited(const TrainRequest& request, const Graph& graph, const TrainerOptions& options,
                        ProgressLine& line) {
  line.show(fmt::format("choosing layouts and places for {} kernels", graph.kernels.size()));
  Program program = expect(compile(graph, request.threads));
  line.show(fmt::format("taking {} of memory and setting the weights", readable(program.arena)));
  return expect(Trainer::start(std::move(program), options));
}

/// The first step that a planner of Sentinel asks for, where no run before has done it. Returns how long it
/// took; nothing where accesses cannot be counted, which is told.
std::optional<Seconds> count_accesses(const Workload& workload, const VerifiedPlan& plan,
                                      const TrainerOptions& options, TrainingData& data, Profile& profile,
                                      ProgressLine& line) try {
  line.show("counting accesses in a step of its own");
  const auto start = std::chrono::steady_clock::now();
  auto counted = with_accesses(
      workload.program, workload.machine, profile, plan, options,
      [&](Trainer& trainer) { data.fill(0, trainer); }, shown_on(line));
  if (!counted) {
    line.tell(fmt::format("accesses are not counted: {}", counted.error().message));
    return std::nullopt;
  }
  profile = *std::move(counted);
  return std::chrono::steady_clock::now() - start;
} catch (const EnvironmentError& error) {
  line.tell(fmt::format("accesses are not counted: {}", error.what()));
  return std::nullopt;
}

Trainer start_planned(const TrainRequest& request, const Graph& graph, const TrainerOptions& options,
                      TrainSetup& setup, ProgressLine& line) {
  const WorkloadRequest asked = request.on(graph, line);
  Workload workload = expect(prepare(asked));
  if (!workload.here) {
    throw BadInput(
        fmt::format("machine {} is not this computer, where training happens: run `terrace "
                    "calibrate` here, or leave out --machine",
                    workload.machine.name));
  }
  const auto budget = expect(budget_of(workload, request.fast));
  workload = expect(fit(asked, std::move(workload), budget[0]));
  Profile profile = expect(profile_of(workload, budget, shown_on(line)));
  const std::string planner =
      request.planner.empty() ? std::string(planners().front().name) : request.planner;
  line.show(fmt::format("planning {} kernels with {}", workload.graph().kernels.size(), planner));
  const auto plan = [&] {
    const Deadline deadline(kPlannerSeconds);
    return expect(plan_of(workload, profile, budget, planner_named(planner, deadline.token())));
  };
  Planned planned = plan();
  std::optional<Seconds> counting;
  if (wants_accesses(planner) && !has_accesses(workload.graph(), profile)) {
    counting = count_accesses(workload, planned.plan, options, *setup.data, profile, line);
    if (counting) planned = plan();
  }
  setup.plan = PlannedRun{std::move(workload.machine),
                          std::move(planned),
                          workload.peak,
                          workload.split_kernels,
                          nullptr,
                          nullptr};
  setup.plan->counting = counting;
  PlannedRun& run = *setup.plan;
  if (request.variants != "any")
    begin_trial(request.steps - steps_kept(setup), workload.program, profile, budget, run, line);
  line.show(
      fmt::format("taking {} and setting the weights", peak_text(run.machine, run.planned.plan->budget)));
  Trainer trainer = start_on_plan(std::move(workload.program), options, run, line);
  if (!run.trial) begin_adjusting(request, trainer.program().graph, std::move(profile), run);
  return trainer;
}

void start_trainer(const TrainRequest& request, const Graph& graph, const TrainerOptions& options,
                   TrainSetup& setup, ProgressLine& line) {
  if (setup.lengths) return start_buckets(request, options, setup, line);
  setup.trainer =
      std::make_unique<Trainer>(request.fast.empty() ? start_unlimited(request, graph, options, line)
                                                     : start_planned(request, graph, options, setup, line));
}

}  // namespace

TrainSetup set_up(const TrainRequest& request, ProgressLine& line) {
  check_data_options(request);
  check_budget_options(request);
  TrainSetup setup;
  setup.lengths = lengths_of(request);
  line.show(fmt::format("building the graph of {}", request.model));
  const Graph graph = setup.lengths ? largest_graph(request, *setup.lengths) : request.training_graph();
  check_files(request);
  if (!request.checkpoint.empty()) setup.checkpoint = checkpoint_file(request);
  setup.batch = request.batch().value_or(leading_extent(graph));
  setup.learning_rate = request.learning_rate.value_or(usual_rate(graph));
  set_up_data(request, graph, setup, line);
  const TrainerOptions options{.seed = request.seed, .learning_rate = setup.learning_rate};
  start_trainer(request, graph, options, setup, line);
  if (!request.load.empty()) expect(setup.trainer->load_weights(request.load));
  resume(request, setup);
  return setup;
}

}  // namespace terrace::cli
