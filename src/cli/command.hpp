// The commands of the program `terrace`. Each adds itself to the application and runs from its callback; bad
// input and a failing environment leave it as an exception whose text is the one sentence the user reads.
#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>

namespace terrace::cli {

/// What the user asked for cannot be done as asked.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void add_doctor(CLI::App& app);
void add_models(CLI::App& app);

}  // namespace terrace::cli
