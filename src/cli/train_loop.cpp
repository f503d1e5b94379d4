#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/memory_limit.hpp"
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
  Narrator(ProgressLine& line, const TrainSetup& setup, std::int64_t steps)
      : line_(line), batch_(setup.batch), steps_(steps), buckets_(setup.buckets.get()) {}

  void step_done(const TrainRecord& record) {
    const bool first = record.steps() == 1;
    if (line_.watched() ? is_due(record.elapsed) : first || is_told(record.steps_done(), steps_))
      news_ = text(record);
  }
  /// What is told of a step is true from now on, whatever happens.
  void tell() {
    if (news_.empty()) return;
    line_.tell(news_);
    news_.clear();
  }

 private:
  /// More often than this nobody can read it.
  bool is_due(Seconds now) {
    constexpr Seconds kPause{0.1};
    if (shown_ && now - *shown_ < kPause) return false;
    shown_ = now;
    return true;
  }

  std::string text(const TrainRecord& record) const {
    const double each = record.elapsed.count() / static_cast<double>(record.steps());
    return fmt::format("step {}/{}, loss {:.4f}, {:.1f} samples/s, {}{} left", record.steps_done(), steps_,
                       record.loss.back(), static_cast<double>(batch_) / each,
                       buckets_ != nullptr ? fmt::format("bucket {}, ", buckets_->current().size) : "",
                       clock_time(each * static_cast<double>(steps_ - record.steps_done())));
  }

  ProgressLine& line_;
  std::int64_t batch_, steps_;
  const BucketTrainer* buckets_;  // nullptr: there are none
  std::optional<Seconds> shown_;
  std::string news_;  // not told yet
};

void run_step(const TrainRequest& request, TrainSetup& setup, TrainRecord& record) {
  const std::int64_t step = record.steps_done();
  use_bucket(request, setup, step);
  setup.trainer->set_learning_rate(rate_at(request, setup.learning_rate, step));
  setup.data->fill(static_cast<std::uint64_t>(step), *setup.trainer);
  const auto start = Clock::now();
  setup.trainer->step();
  record.step_seconds.push_back(Seconds(Clock::now() - start).count());
  record.exposed_seconds.push_back(setup.trainer->timeline().exposed.count());
  record.note_peak(setup.trainer->timeline().peak);
  record.loss.push_back(total_loss(*setup.trainer, request.options.micro_batches));
}

/// A step that ended in numbers is not lost any more once this is written. Returns whether it is being kept.
bool keep_step(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record) {
  if (setup.checkpoint.empty() || !std::isfinite(record.loss.back())) return false;
  const bool due =
      record.steps_done() == request.steps || record.steps_done() % request.checkpoint_every == 0;
  if (due) start_checkpoint(setup);
  return due;
}

/// Between steps; what was not kept yet is.
void interrupted(const TrainRequest& request, const TrainSetup& setup, TrainRecord& record) {
  record.end = TrainRecord::End::interrupted;
  const bool kept = record.steps() == 0 || record.steps_done() % request.checkpoint_every == 0;
  if (!setup.checkpoint.empty() && !kept) start_checkpoint(setup);
}

void sum_up(const TrainSetup& setup, TrainRecord& record) {
  record.moved = setup.trainer->timeline().moved;
  record.note_peak(setup.trainer->timeline().peak);
  record.resident = peak_resident();
  record.group = peak_of_group();
}

}  // namespace

TrainRecord train(const TrainRequest& request, TrainSetup& setup, const Interrupt& interrupt,
                  ProgressLine& line) {
  TrainRecord record;
  record.first_step = static_cast<std::int64_t>(setup.trainer->steps_done());
  Narrator narrator(line, setup, request.steps);
  const auto start = Clock::now();
  while (record.steps_done() < request.steps && record.end == TrainRecord::End::complete) {
    if (interrupt.requested()) {
      interrupted(request, setup, record);
      break;
    }
    run_step(request, setup, record);
    record.elapsed = Clock::now() - start;
    finish_checkpoint(setup);  // of the step before, which was written behind this one
    narrator.tell();
    narrator.step_done(record);
    const bool is_being_kept = keep_step(request, setup, record);
    // A trial compares steps: none of them shares the disk with a checkpoint.
    if (setup.plan && setup.plan->trial) finish_checkpoint(setup);
    if (!is_being_kept) narrator.tell();
    if (!std::isfinite(record.loss.back())) {
      record.end = TrainRecord::End::diverged;
    } else if (!try_plans(request, setup, record, line) && record.steps_done() < request.steps) {
      adjust(setup, record, line);
    }
  }
  finish_checkpoint(setup);
  narrator.tell();
  sum_up(setup, record);
  return record;
}

}  // namespace terrace::cli
