// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "cli/command.hpp"
#include "cli/version.hpp"

namespace {

constexpr int kFailed = 1;
constexpr int kMisused = 2;
constexpr int kInterrupted = 130;  // as shells report a program that Ctrl-C ended

std::string one_line(std::string text) {
  const auto end = text.find_last_not_of('\n');
  text.erase(end == std::string::npos ? 0 : end + 1);
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

int complain(const std::string& sentence, int code) {
  fmt::print(stderr, "terrace: {}\n", one_line(sentence));
  return code;
}

std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({}))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

// CLI11 says only that an argument was not expected; the user wants to know what would have been.
std::string explain(const CLI::App& app, const CLI::ExtrasError& error) {
  const auto chosen = app.get_subcommands();
  const auto extras = app.remaining(true);
  const std::string first = extras.empty() ? error.what() : extras.front();
  if (first.starts_with("-")) {
    return fmt::format("unknown option {}: see terrace {}--help", first,
                       chosen.empty() ? "" : chosen.front()->get_name() + " ");
  }
  if (chosen.empty())
    return fmt::format("unknown command '{}': the commands are {}", first, command_names(app));
  return fmt::format("{} takes no argument '{}': see terrace {} --help", chosen.front()->get_name(), first,
                     chosen.front()->get_name());
}

int run(int argc, char** argv) {
  CLI::App app{"Terrace runs programs whose data does not fit in fast memory.", "terrace"};
  app.set_version_flag("--version", terrace::cli::version_text());
  app.footer(
      "Exit status: 0 done, 1 failed (also: a plan is not safe, bits differ, training diverged), 2 cannot be "
      "done "
      "as asked, 130 interrupted. See docs/exit-codes.md. TERRACE_PROGRESS=off keeps stages off standard "
      "error.");
  app.require_subcommand(0, 1);
  terrace::cli::add_doctor(app);
  terrace::cli::add_models(app);
  terrace::cli::add_graph(app);
  terrace::cli::add_planners(app);
  terrace::cli::add_calibrate(app);
  terrace::cli::add_train(app);
  terrace::cli::add_profile(app);
  terrace::cli::add_plan(app);
  terrace::cli::add_verify(app);
  terrace::cli::add_simulate(app);
  terrace::cli::add_compare(app);
  terrace::cli::add_advise(app);
  terrace::cli::add_ann(app);
  terrace::cli::add_run(app);
  terrace::cli::add_replay(app);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) fmt::print("{}", app.help());
  } catch (const CLI::Success& done) {  // --help and --version
    return app.exit(done);
  } catch (const CLI::ExtrasError& error) {
    return complain(explain(app, error), kMisused);
  } catch (const CLI::ParseError& error) {
    return complain(error.what(), kMisused);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const terrace::cli::Interrupted&) {
    return kInterrupted;
  } catch (const terrace::cli::ExitWith& end) {
    return end.code;
  } catch (const terrace::cli::BadInput& error) {
    return complain(error.what(), kMisused);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}
