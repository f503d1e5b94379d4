// SPDX-License-Identifier: Apache-2.0
#include "cli/train.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "terrace/error.hpp"
#include "train/evaluate.hpp"

namespace terrace::cli {
namespace {

/// Returns what went wrong, if anything did; the rest of the report is made all the same.
std::optional<std::string> save(const TrainRequest& request, const TrainSetup& setup) try {
  if (request.save.empty()) return std::nullopt;
  const auto saved = setup.trainer->save_weights(request.save);
  return saved ? std::nullopt : std::optional(saved.error().message);
} catch (const EnvironmentError& error) {
  return error.what();
}

void evaluate(const TrainRequest& request, const TrainSetup& setup, TrainRecord& record, ProgressLine& line) {
  if (!request.evaluate || record.end != TrainRecord::End::complete) return;
  line.show("classifying the test pictures");
  record.test_accuracy = expect(accuracy(request.model, *setup.trainer, *setup.test_pictures));
}

std::string divergence(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record) {
  return fmt::format("the loss was {} at step {}: lower --learning-rate, which was {}{}",
                     std::isnan(record.loss.back()) ? "no number" : "infinite", record.steps(),
                     setup.learning_rate, request.save.empty() ? "" : "; the weights were not saved");
}

void run_train(const TrainRequest& request) {
  const Interrupt interrupt;
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  ProgressLine line;
  TrainSetup setup = set_up(request, line);
  TrainRecord record = train(request, setup, interrupt, line);
  const bool diverged = record.end == TrainRecord::End::diverged;
  const auto unsaved = diverged ? std::nullopt : save(request, setup);
  evaluate(request, setup, record, line);
  if (request.same_bits && record.end == TrainRecord::End::complete)
    compare_bits(request, setup, record, interrupt, line);
  line.clear();
  if (json) json->write(to_json(request, setup, record));
  if (diverged) throw std::runtime_error(divergence(request, setup, record));
  print_summary(request, setup, record);
  if (unsaved) throw std::runtime_error(*unsaved);
  if (!record.difference.empty())
    throw std::runtime_error("not the same bits as with all memory: " + record.difference);
  if (record.end == TrainRecord::End::interrupted) throw Interrupted();
}

void add_run_options(CLI::App& command, TrainRequest& request) {
  command.add_option("--steps", request.steps, "Steps to train (default: 20)")
      ->type_name("N")
      ->check(whole_number(std::int64_t{1}));
  command.add_option("--seed", request.seed, "Of weights, data and dropout (default: 0)")
      ->type_name("N")
      ->check(whole_number(std::uint64_t{0}));
  command.add_option("--learning-rate", request.learning_rate, "Default: 0.01 for sgd, 0.001 for adam")
      ->type_name("X")
      ->check(positive_number());
  command
      .add_option("--schedule", request.schedule,
                  "How the learning rate goes on: constant (default) or cosine, which falls to zero")
      ->type_name("NAME")
      ->check(one_of({"constant", "cosine"}));
}

void add_budget_options(CLI::App& command, TrainRequest& request) {
  command
      .add_option(
          "--fast", request.fast,
          "Memory to train in: an amount, or a percentage of the graph's peak (default: all it needs)")
      ->type_name("SIZE|PCT%")
      ->check(wrong_fast_budget);
  add_machine_options(command, request);
  add_planner_option(command, request.planner);
  command.add_flag("--same-bits", request.same_bits,
                   "Train again with all memory, and compare every loss and every tensor bit by bit");
  command.add_flag("!--no-adjust", request.adjust,
                   "Keep the plan when the computer turns out faster or slower than measured");
  command
      .add_option("--checkpoint", request.checkpoint,
                  "Folder to keep the state of training in, written behind the next step, a step is told as "
                  "done when it is kept; a run that finds one there goes on from it")
      ->type_name("DIR");
  command
      .add_option("--checkpoint-every", request.checkpoint_every,
                  "Steps from one checkpoint to the next (default: 1)")
      ->type_name("N")
      ->check(whole_number(std::int64_t{1}));
}

void add_file_options(CLI::App& command, TrainRequest& request) {
  command.add_option("--data", request.data, "synthetic (default) or fashion-mnist")
      ->type_name("NAME")
      ->check(one_of({"synthetic", "fashion-mnist"}));
  command
      .add_option("--lengths", request.lengths,
                  "Sequences that change in length from step to step: drawn between two lengths, or one in "
                  "each line of a file; they are padded to the next bucket, which has a plan of its own")
      ->type_name("MIN-MAX|FILE");
  command
      .add_option("--buckets", request.buckets,
                  fmt::format("The most buckets to choose for --lengths (default: {})", kMostBuckets))
      ->type_name("N")
      ->check(whole_number(std::size_t{1}, kMostBuckets));
  command.add_option("--data-folder", request.data_folder, "Where the files of the dataset are")
      ->type_name("DIR");
  command.add_flag("--evaluate", request.evaluate, "In the end, classify the test pictures of the dataset");
  command.add_option("--save", request.save, "Write the trained weights to this file (safetensors)")
      ->type_name("FILE");
  command
      .add_option("--load", request.load,
                  "Start from the weights in this file; data and optimizer start anew")
      ->type_name("FILE");
  command.add_option("--json", request.json, "Also write the result to this file")->type_name("FILE");
}

}  // namespace

void add_train(CLI::App& app) {
  auto request = std::make_shared<TrainRequest>();
  CLI::App* command =
      app.add_subcommand("train", "Trains a model of the zoo, in as much memory as it is given");
  add_model_options(*command, *request, ModelIs::argument);
  add_run_options(*command, *request);
  add_budget_options(*command, *request);
  add_file_options(*command, *request);
  command->callback([request] { run_train(*request); });
}

}  // namespace terrace::cli
