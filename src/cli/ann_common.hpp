// SPDX-License-Identifier: Apache-2.0
// What the subcommands of `terrace ann` share.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/json_file.hpp"
#include "terrace/ann.hpp"

namespace terrace::cli {

using Timer = std::chrono::steady_clock;

/// Seconds.
double since(Timer::time_point began);

/// A line of what a command prints.
void row(std::string_view name, const std::string& value);

/// What every subcommand may be asked for.
struct AnnOutput {
  std::string json;

  std::unique_ptr<JsonFile> open() const { return json.empty() ? nullptr : std::make_unique<JsonFile>(json); }
};
void add_output(CLI::App& command, AnnOutput& output);

/// `30%` of `all`, or an amount. Throws BadInput, which names the option, where it is neither.
Bytes share_of(const std::string& text, Bytes all, const char* option);

nlohmann::json size_json(const ann::IndexSize& size);
void print_size(const ann::IndexSize& size);

void add_ann_build(CLI::App& ann_command);
/// search and tune
void add_ann_search(CLI::App& ann_command);
void add_ann_truth(CLI::App& ann_command);
void add_ann_info(CLI::App& ann_command);
void add_ann_data(CLI::App& ann_command);

}  // namespace terrace::cli
