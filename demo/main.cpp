// The demonstration: trains a network with all the memory it asks for and in a fifth of that, with a disk
// behind it, and shows what this cost.
//
//   demo [MODEL [BATCH]]      resnet50 with a batch of 16 unless said
#include <fmt/format.h>

#include <fstream>

#include "base/fingerprint.hpp"
#include "base/memory_limit.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/workload.hpp"
#include "profile/this_machine.hpp"
#include "terrace/models.hpp"
#include "timeline.hpp"
#include "train/synthetic_data.hpp"

namespace terrace::demo {
namespace {

constexpr int kSteps = 5;
constexpr const char* kShare = "20%";
constexpr const char* kPage = "build/demo/timeline.html";

/// A run of some steps.
struct Record {
  std::vector<double> seconds;
  std::vector<float> losses;
  Bytes resident;      ///< at most, since the run began
  std::string digest;  ///< of every weight and state in the end
  Timeline timeline;   ///< of the last step

  double median_seconds() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

std::string digest(const Trainer& trainer) {
  Fingerprint all;
  for (const Tensor& tensor : trainer.program().graph.tensors) {
    if (!tensor.persistent) continue;
    const std::vector<float> values = trainer.read(tensor.name);
    all.add({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  return all.text();
}

Record train(Trainer trainer, const std::string& how, cli::ProgressLine& line) {
  Record record;
  SyntheticData data(trainer.program().graph, 0);
  for (int i = 0; i < kSteps; ++i) {
    line.show(fmt::format("training {}, step {} of {}", how, i + 1, kSteps));
    data.fill(trainer.steps_done(), trainer);
    trainer.step();
    record.seconds.push_back(trainer.timeline().step.count());
    record.losses.push_back(trainer.result(0)[0]);
  }
  record.resident = peak_resident();
  record.timeline = trainer.timeline();
  record.digest = digest(trainer);
  return record;
}

/// The peak counts anew from here on.
void restart_peak_resident() { std::ofstream("/proc/self/clear_refs") << 5; }

/// Measures this computer even if it was measured before, and keeps that for what follows.
Machine measure_computer(cli::ProgressLine& line) {
  CalibrateOptions options;
  options.slow = {default_slow_tier().value()};
  options.progress = [&](std::string_view what, double share) {
    line.show(fmt::format("calibrating, {:.0f}%: {}", share * 100, what));
  };
  Machine machine = calibrate(options).value();
  keep_machine(machine, machine_cache_file(machine_cache_folder().value(), options)).value();
  line.clear();
  return machine;
}

void tell(const Machine& machine) {
  fmt::print("This computer: {} threads, {:.0f} GFLOP/s", machine.compute.threads,
             machine.compute.flops_per_second / 1e9);
  for (const Link& link : machine.links) {
    fmt::print("; {} > {} {:.1f} GB/s", machine[link.from].name, machine[link.to].name,
               link.rates.back().rate.value / 1e9);
  }
  fmt::print("\n");
}

bool same_bits(const Record& a, const Record& b) { return a.losses == b.losses && a.digest == b.digest; }

std::string seconds(double value) { return fmt::format("{:.3f} s", value); }

Bytes moved(const Timeline& timeline) {
  Bytes sum{0};
  for (const Traffic& traffic : timeline.moved) sum += traffic.bytes;
  return sum;
}

void print_table(const Planned& planned, const Program& program, const Record& limited, const Record& all) {
  const Prediction& predicted = planned.plan->prediction;
  using Align = cli::Table::Align;
  cli::Table table(
      {{""}, {"all memory", Align::right}, {fmt::format("{} and a disk", kShare), Align::right}});
  table.add({"step", seconds(all.median_seconds()), seconds(limited.median_seconds())});
  table.add({"no plan can be faster than", "", seconds(predicted.bound.count())});
  table.add({"the plan predicted", "", seconds(predicted.step.count())});
  table.add({"memory for tensors", readable(program.arena), readable(planned.fast)});
  table.add({"peak of the process", readable(all.resident), readable(limited.resident)});
  table.add({"moved in a step", readable(moved(all.timeline)), readable(moved(limited.timeline))});
  table.add(
      {"kernels waited", seconds(all.timeline.exposed.count()), seconds(limited.timeline.exposed.count())});
  table.add({"loss of the last step", fmt::format("{:.6f}", all.losses.back()),
             fmt::format("{:.6f}", limited.losses.back())});
  table.add({"same bits", "", same_bits(limited, all) ? "yes" : "NO"});
  fmt::print("\n");
  table.print();
}

void write_page(const Picture& picture) {
  const std::filesystem::path path = kPage;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << to_html(picture);
  fmt::print("\nWhat lived where in the last step: {}\n", kPage);
}

int run(const std::string& model, std::int64_t batch) {
  cli::ProgressLine line;
  tell(measure_computer(line));
  const Graph graph = build_model(model, {.batch = batch}).value();
  const Workload workload = prepare({.graph = graph}).value();
  const auto budget = budget_of(workload, kShare).value();
  fmt::print("{} with a batch of {} wants {}; it gets {}.\n", model, batch, readable(workload.program.peak),
             readable(budget[0]));
  const Profile profile =
      profile_of(workload, budget, [&](const std::string& what) { line.show(what); }).value();
  line.show("planning");
  const Planned planned = plan_of(workload, profile, budget, planners().front().name).value();
  const TrainerOptions options{.learning_rate = 0.001F};
  restart_peak_resident();
  const Record limited =
      train(Trainer::start(workload.program, planned.plan, workload.machine, options).value(),
            std::string("in ") + kShare, line);
  restart_peak_resident();
  const Record all = train(Trainer::start(workload.program, options).value(), "with all memory", line);
  line.clear();
  print_table(planned, workload.program, limited, all);
  write_page({workload.graph(), workload.machine, planned.plan.plan(), limited.timeline});
  return same_bits(limited, all) ? 0 : 1;
}

}  // namespace
}  // namespace terrace::demo

int main(int argc, char** argv) {
  try {
    return terrace::demo::run(argc > 1 ? argv[1] : "resnet50", argc > 2 ? std::stoll(argv[2]) : 16);
  } catch (const std::exception& error) {
    fmt::print(stderr, "demo: {}\n", error.what());
    return 1;
  }
}
