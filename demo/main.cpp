// The demonstration: trains a network with all the memory it asks for and in a fifth of that, with a disk
// behind it, and shows what this cost.
//
//   demo [MODEL [BATCH]]      resnet50 with a batch of 16 unless said
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <terrace/models.hpp>
#include <terrace/session.hpp>

#include "timeline.hpp"

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

/// One line that overwrites itself, on a terminal only.
class ProgressLine {
 public:
  void show(const std::string& text) {
    if (isatty(STDERR_FILENO) == 0) return;
    fmt::print(stderr, "\r{:<{}}", text, shown_);
    shown_ = text.size();
  }
  void clear() {
    if (shown_ > 0) fmt::print(stderr, "\r{:<{}}\r", "", shown_);
    shown_ = 0;
  }

 private:
  std::size_t shown_ = 0;  ///< characters standing on the line
};

/// FNV-1a over all that outlives steps: two states with the same digest have the same bits.
std::string digest(const Trainer& trainer) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const Tensor& tensor : trainer.program().graph.tensors) {
    if (!tensor.persistent) continue;
    for (const float value : trainer.read(tensor.name)) {
      hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3;
    }
  }
  return fmt::format("{:016x}", hash);
}

/// The most memory that this process has had at once, as the kernel counts it.
Bytes peak_resident() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return Bytes{kibibytes << 10U};
  }
  return Bytes{0};
}

Record record_of(const TrainingRun& run, const Trainer& trainer) {
  Record record;
  for (const Seconds seconds : run.step_seconds) record.seconds.push_back(seconds.count());
  record.losses = run.loss;
  record.resident = peak_resident();
  record.timeline = trainer.timeline();
  record.digest = digest(trainer);
  return record;
}

/// The same steps with every tensor in memory, on the same kernels.
Record train_in_memory(const Program& program, const TrainerOptions& options, ProgressLine& line) {
  Trainer trainer = Trainer::start(program, options).value();
  const FillInputs fill = synthetic_inputs(program.graph);
  TrainingRun run;
  for (int i = 0; i < kSteps; ++i) {
    line.show(fmt::format("training with all memory, step {} of {}", i + 1, kSteps));
    fill(trainer.steps_done(), trainer);
    trainer.step();
    run.step_seconds.push_back(trainer.timeline().step);
    run.loss.push_back(trainer.result(0)[0]);
  }
  return record_of(run, trainer);
}

/// The peak counts anew from here on.
void restart_peak_resident() { std::ofstream("/proc/self/clear_refs") << 5; }

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

void print_row(std::string_view name, std::string_view all, std::string_view limited) {
  fmt::print("{:<28}{:>14}{:>18}\n", name, all, limited);
}

void print_table(const Plan& plan, Bytes fast, const Program& program, const Record& limited,
                 const Record& all) {
  const Prediction& predicted = plan.prediction;
  fmt::print("\n");
  print_row("", "all memory", fmt::format("{} and a disk", kShare));
  print_row("step", seconds(all.median_seconds()), seconds(limited.median_seconds()));
  print_row("no plan can be faster than", "", seconds(predicted.bound.count()));
  print_row("the plan predicted", "", seconds(predicted.step.count()));
  print_row("memory for tensors", readable(program.arena), readable(fast));
  print_row("peak of the process", readable(all.resident), readable(limited.resident));
  print_row("moved in a step", readable(moved(all.timeline)), readable(moved(limited.timeline)));
  print_row("kernels waited", seconds(all.timeline.exposed.count()),
            seconds(limited.timeline.exposed.count()));
  print_row("loss of the last step", fmt::format("{:.6f}", all.losses.back()),
            fmt::format("{:.6f}", limited.losses.back()));
  print_row("same bits", "", same_bits(limited, all) ? "yes" : "NO");
}

void write_page(const Picture& picture) {
  const std::filesystem::path path = kPage;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << to_html(picture);
  fmt::print("\nWhat lived where in the last step: {}\n", kPage);
}

/// What the run in little memory leaves for the one with all of it, and for the table.
struct Limited {
  Workload workload;
  Plan plan;
  Bytes fast;
  Record record;
};

Limited train_in_little(const std::string& model, std::int64_t batch, const TrainerOptions& options,
                        ProgressLine& line) {
  Session session(build_model(model, {.batch = batch}).value(),
                  {.fast = kShare,
                   .trainer = options,
                   .adjust = false,
                   .measure_again = true,
                   .progress = [&](const SessionProgress& now) { line.show(now.text); }});
  const Machine machine = session.calibrate().value();
  line.clear();
  tell(machine);
  const Workload workload = session.workload().value();
  const Bytes fast = session.budget().value()[0];
  fmt::print("{} with a batch of {} wants {}; it gets {}.\n", model, batch, readable(workload.peak),
             readable(fast));
  const Plan plan = session.plan().value();
  restart_peak_resident();
  const TrainingRun run = session.train(kSteps, synthetic_inputs(workload.graph())).value();
  return {workload, plan, fast, record_of(run, session.trainer())};
}

int run(const std::string& model, std::int64_t batch) {
  ProgressLine line;
  const TrainerOptions options{.learning_rate = 0.001F};
  const Limited limited = train_in_little(model, batch, options, line);
  restart_peak_resident();
  const Record all = train_in_memory(limited.workload.program, options, line);
  line.clear();
  print_table(limited.plan, limited.fast, limited.workload.program, limited.record, all);
  write_page({limited.workload.graph(), limited.workload.machine, limited.plan, limited.record.timeline});
  return same_bits(limited.record, all) ? 0 : 1;
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
