// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/memory_limit.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/progress.hpp"
#include "cli/run_program.hpp"
#include "cli/run_report.hpp"
#include "pages/compressed_store.hpp"
#include "pages/geometry.hpp"
#include "pages/userfault.hpp"
#include "pages/victims.hpp"
#include "terrace/tier_spec.hpp"

extern char** environ;

namespace terrace::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct RunRequest {
  std::string fast = "50%", policy = "keeper", record, json;
  std::vector<std::string> slow;
  std::string overhead = "5%", interval = "1s", packed = "0";
  bool quiet = false, encrypt = false;
  std::vector<std::string> program;
};

/// What a setting holds must not end it.
void check_name(const char* option, const std::string& name) {
  if (name.find(';') != std::string::npos)
    throw BadInput(fmt::format("{} {} has a ';' in its name: choose another one", option, name));
}

constexpr Bytes kLeastFast{4U << 20};

Bytes fast_memory(const std::string& text) {
  double percent = 0;
  if (text.ends_with('%') && reads_as(std::string_view(text).substr(0, text.size() - 1), percent) &&
      percent > 0 && percent <= 100)
    return Bytes{
        static_cast<std::uint64_t>(static_cast<double>(memory_limit().available.count) * percent / 100)};
  const auto amount = parse_bytes(text);
  if (text.ends_with('%') || !amount || *amount < kLeastFast)
    throw BadInput(
        fmt::format("--fast '{}' is no amount of memory for a program: give one of at least {} such as "
                    "2GiB, or a share of this computer's such as 30%",
                    text, readable(kLeastFast)));
  return *amount;
}

/// More than a control group leaves would end the program, not slow it down. Processes look at what it leaves
/// while they run (pages/group_room.hpp).
Bytes within_control_group(Bytes fast, const MemoryLimit& limit, bool quiet) {
  if (limit.source == "MemAvailable") return fast;
  const std::uint64_t left = limit.available.count, beside = left / 64 + (1U << 20);
  const Bytes usable{left - std::min(left, beside)};
  if (fast <= usable) return fast;
  if (usable < kLeastFast)
    throw BadInput(
        fmt::format("the control group {} leaves {}, which is too little to run a program in: "
                    "raise its limit",
                    limit.source, readable(limit.available)));
  if (!quiet)
    fmt::print(stderr, "terrace: the control group {} leaves {}, so {} are used in place of --fast {}\n",
               limit.source, readable(limit.available), readable(usable), readable(fast));
  return usable;
}

/// A number with a unit behind it, which may be left out.
double number_with(const std::string& text, char unit, double most, const char* option) {
  double number = 0;
  const bool has_unit = text.ends_with(unit);
  if (!reads_as(std::string_view(text).substr(0, text.size() - has_unit), number) || number < 0 ||
      number > most)
    throw BadInput(
        fmt::format("{} '{}' does not fit: give a number from 0 to {:g}{}", option, text, most, unit));
  return number;
}

/// The folder and the room in it: `file:FOLDER:SIZE`, or a folder.
struct Disk {
  fs::path folder;
  Bytes room;
};

Disk disk_of(const std::string& text) {
  std::error_code failed;
  if (text.starts_with("file:")) {
    const TierSpec spec = expect(parse_tier_spec(text));
    const fs::path path = spec.path;
    return {fs::absolute(fs::is_directory(path, failed) ? path : path.parent_path()), spec.capacity};
  }
  if (text.find(':') != text.npos && !fs::exists(text, failed))
    throw BadInput(fmt::format("--slow {} is no disk: name a folder, or file:FOLDER:SIZE", text));
  const fs::path folder = text.empty() ? fs::temp_directory_path() : fs::path(text);
  const auto space = fs::space(folder, failed);
  if (failed) throw BadInput(fmt::format("--slow {} is no folder: name one on a disk", folder.native()));
  return {fs::absolute(folder), Bytes{space.available / 10 * 9}};
}

/// Next to the program, or where it is installed.
fs::path library_path() {
  const fs::path folder = fs::canonical("/proc/self/exe").parent_path();
  for (const char* place : {"libterrace-run.so", "../lib/libterrace-run.so",
                            "../lib/x86_64-linux-gnu/libterrace-run.so", "../lib64/libterrace-run.so"}) {
    if (fs::exists(folder / place)) return fs::canonical(folder / place);
  }
  throw BadInput("libterrace-run.so is not where this program is: build or install all of Terrace");
}

/// Memory that the started processes find by its file.
class SharedBoard {
 public:
  SharedBoard() : file_(memfd_create("terrace-run", MFD_CLOEXEC)) {
    if (file_ < 0 || ftruncate(file_, sizeof(pages::RunBoard)) != 0)
      throw std::runtime_error("no shared memory left");
    void* const start = mmap(nullptr, sizeof(pages::RunBoard), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (start == MAP_FAILED) throw std::runtime_error("no shared memory left");
    board_ = static_cast<pages::RunBoard*>(start);
  }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  ~SharedBoard() {
    munmap(board_, sizeof(pages::RunBoard));
    close(file_);
  }

  std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }
  const pages::RunBoard& operator*() const { return *board_; }
  pages::Wakeful& wakeful() const { return board_->wakeful; }

 private:
  int file_;
  pages::RunBoard* board_ = nullptr;
};

/// A thread that keeps processors awake for the started processes.
class Awake {
 public:
  explicit Awake(pages::Wakeful& wakeful) : wakeful_(wakeful), thread_([&] { wakeful_.run(); }) {}
  Awake(const Awake&) = delete;
  ~Awake() {
    wakeful_.stop();
    thread_.join();
  }

 private:
  pages::Wakeful& wakeful_;
  std::thread thread_;
};

std::vector<std::string> environment_with(const std::string& library, const std::string& settings) {
  std::vector<std::string> all;
  std::string preload = library;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("LD_PRELOAD="))
      preload += ":" + std::string(text.substr(11));
    else if (!text.starts_with(std::string(pages::kRunVariable) + "="))
      all.emplace_back(text);
  }
  all.push_back("LD_PRELOAD=" + preload);
  all.push_back(std::string(pages::kRunVariable) + "=" + settings);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// Ctrl-C is for the program, which is in the same group of the terminal; a request to end is passed on.
pid_t running = 0;
void pass_on(int signal) {
  if (running > 0) kill(running, signal);
}

pid_t start_program(const fs::path& program, std::vector<std::string> arguments,
                    std::vector<std::string> environment) {
  const auto argv = pointers_to(arguments), envp = pointers_to(environment);
  pid_t child = 0;
  const int cause = posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), envp.data());
  if (cause != 0)
    throw BadInput(fmt::format("{} cannot be started ({})", program.native(), std::strerror(cause)));
  running = child;
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
  signal(SIGTERM, pass_on);
  signal(SIGHUP, pass_on);
  return child;
}

int wait_for_program(pid_t child, const SharedBoard& board, Clock::time_point began, bool quiet) {
  ProgressLine line;
  constexpr auto kPause = std::chrono::milliseconds(20);
  constexpr auto kShow = std::chrono::milliseconds(500);
  auto shown = began;
  for (int status = 0;;) {
    const pid_t ended = waitpid(child, &status, line.watched() && !quiet ? WNOHANG : 0);
    if (ended == child) {
      line.clear();
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (ended == 0) std::this_thread::sleep_for(kPause);
    if (ended == 0 && Clock::now() - shown >= kShow) {
      shown = Clock::now();
      line.show(progress_text(sum_of(rows_of(*board)), std::chrono::duration<double>(shown - began).count()));
    }
  }
}

/// What the started processes are told (run_board.hpp).
std::string settings_text(const RunRequest& request, Bytes fast, const MemoryLimit& limit,
                          const SharedBoard& board) {
  const double interval = number_with(request.interval, 's', 3600, "--interval");
  if (interval < 0.1) throw BadInput("--interval is at least 0.1s");
  const double packed = number_with(request.packed, '%', 90, "--packed");
  if (packed > 0 && !pages::can_compress())
    throw BadInput(
        "--packed needs LZ4, which this build is without: install liblz4-dev and build it again, or leave "
        "--packed out");
  std::string text =
      fmt::format("fast={};policy={};packed={};overhead={};interval={};encrypt={};board={}", fast.count,
                  request.policy, packed, number_with(request.overhead, '%', 50, "--overhead"), interval,
                  request.encrypt ? 1 : 0, board.path());
  const auto names = request.slow.empty() ? std::vector<std::string>{""} : request.slow;
  if (names.size() > 4) throw BadInput("a program has at most four slower tiers: leave a --slow out");
  for (const std::string& name : names) {
    const Disk disk = disk_of(name);
    check_name("--slow", disk.folder.native());
    text += fmt::format(";slow={};room={}", disk.folder.native(), disk.room.count);
  }
  if (limit.source != "MemAvailable") {
    check_name("The control group", limit.source);
    text += ";group=" + limit.source;
  }
  if (!request.record.empty()) {
    const fs::path file = fs::absolute(request.record);
    check_name("--record", file.native());
    text += ";record=" + file.native();
  }
  return text;
}

/// The trace begins with what its numbers mean; the processes add to it.
void begin_trace(const std::string& name) {
  if (name.empty()) return;
  std::ofstream out(name);
  out << "terrace-trace 1 block=" << pages::kPart << std::endl;
  if (!out) throw BadInput(fmt::format("--record {} cannot be written: name another file", name));
}

void run_run(const RunRequest& request) {
  if (request.program.empty())
    throw BadInput("no program to run: give one after --, such as terrace run -- sort data");
  const auto json = request.json.empty() ? nullptr : std::make_unique<JsonFile>(request.json);
  const fs::path program = expect(find_program(request.program.front()));
  expect(can_be_loaded_into(program));
  const auto features = expect(pages::probe_userfault());
  if (!features.moves)
    throw BadInput(
        "this kernel cannot move pages out of a running program (UFFDIO_MOVE): Linux 6.8 or later can");
  RunOutcome outcome;
  const MemoryLimit limit = memory_limit();
  outcome.fast = within_control_group(fast_memory(request.fast), limit, request.quiet);
  const SharedBoard board;
  const std::string settings = settings_text(request, outcome.fast, limit, board);
  begin_trace(request.record);
  const auto began = Clock::now();
  const pid_t child = start_program(program, request.program, environment_with(library_path(), settings));
  const Awake awake(board.wakeful());
  outcome.code = wait_for_program(child, board, began, request.quiet);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  outcome.processes = rows_of(*board);
  if (json) json->write(to_json(outcome));
  if (!request.quiet) fmt::print(stderr, "{}", summary_text(outcome));
  if (outcome.code != 0) throw ExitWith{outcome.code};
}

}  // namespace

void add_run(CLI::App& app) {
  auto request = std::make_shared<RunRequest>();
  CLI::App* command = app.add_subcommand("run", "Runs an unmodified program in less memory than it asks for");
  command->add_option("--fast", request->fast,
                      "Memory it may use: an amount, or a share of this computer's (default: 50%)");
  command
      ->add_option("--slow", request->slow,
                   "Where the rest goes: a folder on a disk, or file:FOLDER:SIZE; several, the fastest "
                   "first (default: the "
                   "temporary folder)")
      ->allow_extra_args(false);
  command->add_option("--packed", request->packed,
                      "Share of --fast in which pages may be kept compressed before they go to a disk "
                      "(default: 0, none)");
  command->add_option("--overhead", request->overhead,
                      "Share of the time that finding out what is hot may take (default: 5%; 0: do not)");
  command->add_option("--interval", request->interval, "How long one look at all memory takes (default: 1s)");
  command->add_flag("--encrypt", request->encrypt,
                    "Encrypts what leaves memory; the key dies with the process");
  command->add_option("--record", request->record,
                      "Writes which memory was wanted when, for `terrace replay`");
  command
      ->add_option("--policy", request->policy,
                   "What leaves memory first: keeper, lru, async-lmp or first-touch")
      ->check(one_of(pages::victim_policies()));
  command->add_option("--json", request->json, "Writes what happened to this file");
  command->add_flag("--quiet", request->quiet, "Says nothing about memory");
  command->add_option("program", request->program, "The program and its arguments, after --")
      ->type_name("PROGRAM");
  command->callback([request] { run_run(*request); });
}

}  // namespace terrace::cli
