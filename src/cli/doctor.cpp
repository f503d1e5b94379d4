// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/doctor_json.hpp"
#include "cli/json_file.hpp"
#include "cli/progress.hpp"
#include "machine/checkup.hpp"
#include "pages/userfault.hpp"

namespace terrace::cli {
namespace {

struct DoctorRequest {
  std::string folder;  ///< empty = the current one
  std::string json;
};

Computer look_and_show_progress(const std::filesystem::path& folder) {
  ProgressLine line;
  return look_at_computer(folder, line.measuring("measuring the disk"));
}

/// Checks what paged memory and `terrace run` need.
Check check_userfaultfd() {
  const auto features = pages::probe_userfault();
  if (!features) return {"userfaultfd", CheckStatus::missing, "refused", features.error().message};
  if (!features->protects)
    return {"userfaultfd", CheckStatus::missing, "without write-protection", "use Linux 5.7 or later"};
  if (!features->moves)
    return {"userfaultfd", CheckStatus::limited,
            "without MOVE: paged memory copies, and `terrace run` is refused", "use Linux 6.8 or later"};
  return {"userfaultfd", CheckStatus::ok, "missing and protected pages, MOVE", ""};
}

void print_table(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    fmt::print("{:<13} {:<8} {}{}{}\n", check.name, to_string(check.status), check.found,
               check.advice.empty() ? "" : ". To do: ", check.advice);
  }
}

void run_doctor(const DoctorRequest& request) {
  // A folder that was asked for by name must work; the current one is only a guess.
  if (!request.folder.empty()) {
    if (const auto storage = probe_storage(request.folder); !storage) throw BadInput(storage.error().message);
  }
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  const auto folder = std::filesystem::canonical(request.folder.empty() ? "." : request.folder);
  const Computer computer = look_and_show_progress(folder);
  std::vector<Check> checks = check_up(computer);
  checks.push_back(check_userfaultfd());
  if (json) {
    json->write(to_json(computer, checks));
  } else {
    print_table(checks);
  }
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto request = std::make_shared<DoctorRequest>();
  CLI::App* command = app.add_subcommand("doctor", "Shows what this computer offers, and what is missing");
  command->add_option("--path", request->folder, "Folder on the disk to look at (default: the current one)")
      ->type_name("DIR");
  command->add_option("--json", request->json, "Write the result to this file instead of printing a table")
      ->type_name("FILE");
  command->callback([request] { run_doctor(*request); });
}

}  // namespace terrace::cli
