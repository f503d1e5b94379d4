// SPDX-License-Identifier: Apache-2.0
// The commands of the program `terrace`. Each adds itself to the application and runs from its callback; bad
// input and a failing environment leave it as an exception whose text is the one sentence the user reads.
#pragma once

#include <stdexcept>

#include "terrace/result.hpp"

// Parsing this library's header takes seconds: only files that add options or commands include it.
namespace CLI {
class App;
}

namespace terrace::cli {

/// What the user asked for cannot be done as asked.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The value, or BadInput with the reason why there is none.
template <class T>
T expect(Result<T> result) {
  if (!result) throw BadInput(result.error().message);
  return *std::move(result);
}
inline void expect(const Result<void>& result) {
  if (!result) throw BadInput(result.error().message);
}

/// The user stopped the command, which told all there is to tell.
struct Interrupted {};

/// The command ends with this status and has said all there is to say.
struct ExitWith {
  int code = 0;
};

void add_advise(CLI::App& app);
void add_ann(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_compare(CLI::App& app);
void add_doctor(CLI::App& app);
void add_graph(CLI::App& app);
void add_models(CLI::App& app);
void add_plan(CLI::App& app);
void add_planners(CLI::App& app);
void add_profile(CLI::App& app);
void add_replay(CLI::App& app);
void add_run(CLI::App& app);
void add_simulate(CLI::App& app);
void add_train(CLI::App& app);
void add_verify(CLI::App& app);

}  // namespace terrace::cli
