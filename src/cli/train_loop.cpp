#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "cli/train.hpp"

namespace terrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Losses of parts are averaged, those of different networks added.
float total_loss(const Trainer& trainer, std::int64_t parts) {
  double sum = 0;
  for (std::size_t i = 0; i < trainer.program().graph.results.size(); ++i) sum += trainer.result(i)[0];
  return static_cast<float>(sum / static_cast<double>(parts));
}

/// Cosine: from the full rate at the first step to almost none at the last.
float rate_at(const TrainRequest& request, float full, std::int64_t step) {
  if (request.schedule == "constant") return full;
  const double done = static_cast<double>(step) / static_cast<double>(request.steps);
  return static_cast<float>(full * 0.5 * (1 + std::cos(std::numbers::pi * done)));
}

std::string clock_time(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

/// Few enough lines for a log however many steps there are: the first, the last and some between.
bool is_told(std::int64_t done, std::int64_t steps) {
  constexpr std::int64_t kLines = 18;
  return done == 1 || done == steps || done % ((steps + kLines - 1) / kLines) == 0;
}

class Narrator {
 public:
  Narrator(ProgressLine& line, std::int64_t batch, std::int64_t steps)
      : line_(line), batch_(batch), steps_(steps) {}

  void step_done(const TrainRecord& record) {
    const auto done = static_cast<std::int64_t>(record.steps());
    if (line_.watched() ? is_due(record.elapsed) : is_told(done, steps_)) {
      line_.show(text(record, done));
      line_.say(text(record, done));
    }
  }

 private:
  /// More often than this nobody can read it.
  bool is_due(Seconds now) {
    constexpr Seconds kPause{0.1};
    if (shown_ && now - *shown_ < kPause) return false;
    shown_ = now;
    return true;
  }

  std::string text(const TrainRecord& record, std::int64_t done) const {
    const double seconds = record.elapsed.count(), each = seconds / static_cast<double>(done);
    return fmt::format("step {}/{}, loss {:.4f}, {:.1f} samples/s, {} left", done, steps_, record.loss.back(),
                       static_cast<double>(batch_) / each,
                       clock_time(each * static_cast<double>(steps_ - done)));
  }

  ProgressLine& line_;
  std::int64_t batch_, steps_;
  std::optional<Seconds> shown_;
};

void run_step(const TrainRequest& request, TrainSetup& setup, TrainRecord& record) {
  const auto step = static_cast<std::int64_t>(record.steps());
  setup.trainer->set_learning_rate(rate_at(request, setup.learning_rate, step));
  setup.data->fill(static_cast<std::uint64_t>(step), *setup.trainer);
  const auto start = Clock::now();
  setup.trainer->step();
  record.step_seconds.push_back(Seconds(Clock::now() - start).count());
  record.loss.push_back(total_loss(*setup.trainer, request.options.micro_batches));
}

}  // namespace

double TrainRecord::median_step_seconds() const {
  if (step_seconds.empty()) return 0;
  std::vector<double> sorted = step_seconds;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : std::midpoint(sorted[half - 1], sorted[half]);
}

TrainRecord train(const TrainRequest& request, TrainSetup& setup, const Interrupt& interrupt,
                  ProgressLine& line) {
  TrainRecord record;
  Narrator narrator(line, setup.batch, request.steps);
  const auto start = Clock::now();
  while (static_cast<std::int64_t>(record.steps()) < request.steps) {
    if (interrupt.requested()) {
      record.end = TrainRecord::End::interrupted;
      break;
    }
    run_step(request, setup, record);
    record.elapsed = Clock::now() - start;
    narrator.step_done(record);
    if (!std::isfinite(record.loss.back())) {
      record.end = TrainRecord::End::diverged;
      break;
    }
  }
  return record;
}

}  // namespace terrace::cli
