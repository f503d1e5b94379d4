#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/memory_limit.hpp"
#include "cli/train.hpp"

namespace terrace::cli {
namespace {

double samples_per_second(const TrainSetup& setup, const TrainRecord& record) {
  if (record.steps() == 0) return 0;
  return static_cast<double>(setup.batch) * static_cast<double>(record.steps()) / record.elapsed.count();
}

std::string how_it_ended(const TrainRequest& request, const TrainRecord& record) {
  if (record.end == TrainRecord::End::complete) return fmt::format("{} steps", record.steps());
  return fmt::format("interrupted after step {} of {}", record.steps(), request.steps);
}

}  // namespace

nlohmann::json to_json(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record) {
  const Program& program = setup.trainer->program();
  nlohmann::json json = {
      {"model", request.model},
      {"batch", setup.batch},
      {"planner", "unlimited"},
      {"tiers", {"dram"}},
      {"budget_bytes", nullptr},
      {"peak_bytes", {{"dram", program.arena.count}}},
      {"graph_peak_bytes", program.peak.count},
      {"step_seconds", record.step_seconds},
      {"median_step_seconds", record.median_step_seconds()},
      {"loss", record.loss},
      {"moved_bytes", nlohmann::json::object()},
      {"exposed_seconds", 0.0},
      {"predicted_step_seconds", nullptr},
      {"bound_seconds", nullptr},
      {"same_bits", nullptr},
      {"seed", request.seed},
      {"threads", program.threads},
      {"parameters", parameters(program.graph)},
      {"samples_per_second", samples_per_second(setup, record)},
      {"resident_peak_bytes", peak_resident().count},
  };
  if (record.test_accuracy) json["test_accuracy"] = *record.test_accuracy;
  return json;
}

void print_summary(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record) {
  const Program& program = setup.trainer->program();
  const auto row = [](std::string_view name, const std::string& value) {
    fmt::print("{:<16} {}\n", name, value);
  };
  row("model", fmt::format("{}, batch {}, {:.2f} M parameters, {} threads", request.model, setup.batch,
                           static_cast<double>(parameters(program.graph)) / 1e6, program.threads));
  row("run", how_it_ended(request, record));
  if (record.steps() > 0) {
    row("median step", fmt::format("{:.4f} s", record.median_step_seconds()));
    row("throughput", fmt::format("{:.1f} samples/s", samples_per_second(setup, record)));
    row("final loss", fmt::format("{:.6f}", record.loss.back()));
  }
  if (record.test_accuracy) row("test accuracy", fmt::format("{:.2f}%", *record.test_accuracy * 100));
  row("graph peak", readable(program.peak));
  row("arena", readable(program.arena));
  row("peak resident", readable(peak_resident()));
}

}  // namespace terrace::cli
