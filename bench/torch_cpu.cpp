// SPDX-License-Identifier: Apache-2.0
// Claim: a PyTorch model trains in half of its memory with two added lines, at nearly the speed it has with
// all memory, and several times faster than with swap or with hooks that write files.
//
//   bench/run torch_cpu [--quick] [--rounds N] [--way fit,fit-optimizer,step,hooks,swap] [CASE...]
//       resnet50-2284 resnet50-1233 gpt2-40 resnet50-full
//
// Contenders are processes of bench/torch/rival.py whose steps alternate: PyTorch with all memory; and in
// memory control groups of one size, without swap, `terrace.torch.fit` of the model, the same with its
// optimizer (so weights and states move, too), `terrace.torch.Step` and synchronous hooks to a raw file, and
// PyTorch as it is with a swap file on the same disk. All have the same fair environment: the OpenBLAS
// kernels that are fastest here, and malloc thresholds that keep freed memory; but hooks have malloc's own,
// for with the others the holes that they leave in the heap have them killed, and a group a quarter larger
// than ours, in which they live in every run. Our losses must be those of PyTorch with all memory. The
// benchmark needs root.
#include <csignal>
#include <optional>
#include <sstream>
#include <thread>

#include "budget_contenders.hpp"
#include "swap_file.hpp"

namespace terrace::bench {
namespace {

using nlohmann::json;
using namespace literals;

constexpr Bytes kSwap = 12_GiB;
constexpr Bytes kPageCache =
    64_MiB;  // of a group, which also holds the pages of files that a process has read

struct TorchCase {
  std::string name, model;
  std::int64_t batch = 0;
  Bytes limit;           ///< of the group; 0: all memory, and fit is given more than the model takes
  double percent = 0;    ///< of what PyTorch with all memory took, where no limit is given
  double aim_plain = 0;  ///< fit's time over plain's
};

const std::vector<TorchCase>& torch_cases() {
  static const std::vector<TorchCase> all{{"resnet50-2284", "resnet50", 32, 2284_MiB, 0, 1.3},
                                          {"resnet50-1233", "resnet50", 32, 1233_MiB, 0, 2.2},
                                          {"gpt2-40", "gpt2", 4, {}, 0.4, 1.3},
                                          {"resnet50-full", "resnet50", 32, {}, 0, 1.03}};
  return all;
}

struct Request {
  bool quick = false;
  int rounds = 5;
  std::vector<std::string> ways{"fit", "fit-optimizer", "hooks", "swap"}, cases;
};

/// Ways by which Terrace trains a network.
const std::vector<std::string> kOurs{"fit", "fit-optimizer", "step"};
bool is_ours(const std::string& way) { return std::find(kOurs.begin(), kOurs.end(), way) != kOurs.end(); }

std::string threads() { return std::to_string(std::thread::hardware_concurrency()); }

/// What contenders have. Without a core type OpenBLAS chooses.
std::vector<std::string> settings_for(const std::string& core, const std::string& way = {}) {
  std::vector<std::string> settings{"OPENBLAS_NUM_THREADS=" + threads(), "OMP_NUM_THREADS=" + threads(),
                                    "PYTHONPATH=python", "TERRACE_LIBRARY=" TERRACE_C_LIBRARY};
  if (way != "hooks") {
    settings.insert(settings.end(), {"MALLOC_MMAP_THRESHOLD_=1000000000000",
                                     "MALLOC_TRIM_THRESHOLD_=1000000000000", "MALLOC_TOP_PAD_=67108864"});
  }
  if (!core.empty()) settings.push_back("OPENBLAS_CORETYPE=" + core);
  return settings;
}

/// OpenBLAS does not know new processors, and its choice may be several times slower than the best.
json fastest_core() {
  json tried = json::object();
  std::string best;
  double most = 0;
  for (const char* core : {"", "Zen", "Haswell", "SkylakeX"}) {
    LineProcess process({"/usr/bin/python3", "bench/torch/blas.py"}, settings_for(core));
    double gflops = 0;
    try {
      gflops = json::parse(process.read_line()).at("gflops");
    } catch (const std::exception&) {
      continue;  // the processor lacks the instructions
    }
    tried[*core == 0 ? "default" : core] = gflops;
    if (gflops > most * 1.02) most = gflops, best = core;
  }
  return {{"chosen", best}, {"gflops", tried}};
}

Owned contender(const TorchCase& one, const std::string& way, const std::string& core, Bytes limit,
                const std::filesystem::path& disk) {
  std::vector<std::string> command{"/usr/bin/python3", "bench/torch/rival.py",
                                   "--model",          one.model,
                                   "--batch",          std::to_string(one.batch),
                                   "--threads",        threads(),
                                   "--disk",           disk.native()};
  const bool unlimited = limit.count == 0 || way == "plain";
  if (way == "hooks") command.insert(command.end(), {"--way", "hooks"});
  if (is_ours(way)) {
    const Bytes memory = unlimited ? Bytes{12_GiB} : limit - kPageCache;
    command.insert(command.end(), {"--way", way, "--memory", std::to_string(memory.count) + "B"});
  }
  if (way == "hooks") limit = Bytes{limit.count / 4 * 5};
  const auto swap = way == "swap" ? MemoryGroup::Swap::unlimited : MemoryGroup::Swap::none;
  return std::make_unique<Contender>(way, command, settings_for(core, way),
                                     unlimited ? nullptr : std::make_unique<MemoryGroup>(way, limit, swap));
}

/// Runs the steps of all contenders of one case in turn. One that is killed says so in its row.
class Comparison {
 public:
  Comparison(const Request& request, const TorchCase& one, const std::string& core,
             const std::filesystem::path& disk)
      : request_(request), one_(one) {
    plain_ = contender(one, "plain", core, {}, disk);
    plain_->warm_up(kWarmUp);
    limit_ = one.limit;
    if (one.percent > 0) {
      plain_->step();  // a summary needs one
      const auto taken = plain_->summary().at("peak_rss_bytes").get<double>();
      limit_ = Bytes{static_cast<std::uint64_t>(taken * one.percent)};
      plain_->warm_up(0);  // that step is not measured
      ++warm_up_;
    }
    for (const std::string& way : request.ways) {
      if (limit_.count == 0 && !is_ours(way)) continue;
      ways_.push_back(way);
      contenders_.emplace_back().start([&] { return contender(one, way, core, limit_, disk); },
                                       is_ours(way) ? warm_up_ : 1);
    }
  }

  json run() {
    const int rounds = request_.quick ? 1 : request_.rounds;
    for (int i = 0; i < rounds; ++i) {
      plain_->step();
      for (Attempted& each : contenders_) each.step();
    }
    json row{{"case", one_.name},
             {"rounds", rounds},
             {"limit_bytes", limit_.count},
             {"aim_over_plain", one_.aim_plain},
             {"plain", plain_->summary()}};
    for (std::size_t i = 0; i < ways_.size(); ++i) row[ways_[i]] = told(contenders_[i]);
    return row;
  }

 private:
  static constexpr int kWarmUp = 3;  // fit watches the first step, and plans before the second

  json told(const Attempted& each) {
    if (!each.lives()) return {{"ended", each.end()}};
    json told = (*each).summary();
    told["over_plain"] = median((*each).seconds()) / median(plain_->seconds());
    return told;
  }

  const Request& request_;
  const TorchCase& one_;
  Bytes limit_;
  int warm_up_ = kWarmUp;  // ours have as many steps behind them as plain, so that losses can be compared
  Owned plain_;
  std::vector<std::string> ways_;
  std::vector<Attempted> contenders_;
};

void print_way(const json& row, const std::string& way) {
  if (!row.contains(way)) return;
  const json& told = row.at(way);
  const double mib = 1 << 20;
  if (told.contains("ended")) {
    print_line("  " + way + ": " + told.at("ended").get<std::string>());
    return;
  }
  std::printf("  %-13s %8.3f s (%.3f..%.3f), %.2f of plain; resident %.0f MiB", way.c_str(),
              told.at("median_seconds").get<double>(), told.at("spread")[0].get<double>(),
              told.at("spread")[1].get<double>(), told.value("over_plain", 1.0),
              told.at("peak_rss_bytes").get<double>() / mib);
  if (told.contains("group_peak_bytes")) {
    std::printf(", group %.0f of %.0f MiB", told.at("group_peak_bytes").get<double>() / mib,
                told.at("group_limit_bytes").get<double>() / mib);
  }
  std::printf("\n");
  std::fflush(stdout);
}

bool runs(const json& row, const std::string& way) {
  return row.contains(way) && !row.at(way).contains("ended");
}

/// All train the same batch from the same seed, so the losses of the last step are those of as many steps.
void require_same_losses(json& row) {
  for (const std::string& way : kOurs) {
    if (!runs(row, way)) continue;
    row["same_loss"] = row.at(way).at("last_loss") == row.at("plain").at("last_loss");
    if (row.at("same_loss") == false) {
      throw std::runtime_error("the losses differ: " + row.at(way).at("last_loss").dump() + " by " + way +
                               ", " + row.at("plain").at("last_loss").dump() + " with all memory");
    }
  }
}

/// The time over plain's of the faster of ours, where one of them runs.
std::optional<double> best_ratio(const json& row) {
  std::optional<double> best;
  for (const std::string& way : kOurs) {
    if (runs(row, way)) best = std::min(best.value_or(1e9), row.at(way).at("over_plain").get<double>());
  }
  return best;
}

void run(const Request& request) {
  if (geteuid() != 0)
    throw std::runtime_error("this makes memory control groups and a swap file: run it as root");
  const ScratchFolder scratch("build/bench/torch_cpu-" + std::to_string(getpid()));
  std::optional<SwapFile> swap;
  if (std::count(request.ways.begin(), request.ways.end(), "swap") > 0)
    swap.emplace(scratch.path() / "swap", kSwap);
  const json core = fastest_core();
  print_line("OpenBLAS kernels: " + core.dump());
  json rows = json::array();
  std::vector<double> ratios;
  for (const TorchCase& one : torch_cases()) {
    if (std::find(request.cases.begin(), request.cases.end(), one.name) == request.cases.end()) continue;
    json row = Comparison(request, one, core.at("chosen"), scratch.path()).run();
    print_line(one.name + ":");
    for (const char* way : {"plain", "fit", "fit-optimizer", "step", "hooks", "swap"}) print_way(row, way);
    require_same_losses(row);
    if (const auto ratio = best_ratio(row)) ratios.push_back(*ratio);
    rows.push_back(std::move(row));
  }
  if (ratios.empty()) throw std::runtime_error("none of our ways could be measured: see above");
  rows.push_back({{"openblas", core}});
  print_result("PyTorch models in less memory", "1.3 of the time with all memory in half of it",
               ratios.front(), spread(ratios), rows);
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> all;
  std::stringstream parts(list);
  for (std::string one; std::getline(parts, one, ',');) all.push_back(one);
  return all;
}

Request request_of(const std::vector<std::string>& arguments) {
  Request request;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const auto known = [&](const TorchCase& one) { return one.name == argument; };
    if (argument == "--quick") {
      request.quick = true;
    } else if (argument == "--rounds" && i + 1 < arguments.size()) {
      request.rounds = std::max(1, std::atoi(arguments[++i].c_str()));
    } else if (argument == "--way" && i + 1 < arguments.size()) {
      request.ways = parts_of(arguments[++i]);
    } else if (std::any_of(torch_cases().begin(), torch_cases().end(), known)) {
      request.cases.push_back(argument);
    } else {
      throw std::runtime_error(
          "'" + argument +
          "' is no option and no case here: take --quick, --rounds N, --way "
          "fit,fit-optimizer,step,hooks,swap, resnet50-2284, resnet50-1233, gpt2-40 or resnet50-full");
    }
  }
  if (request.cases.empty()) {
    for (const TorchCase& one : torch_cases()) request.cases.push_back(one.name);
  }
  return request;
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  using namespace terrace::bench;
  std::signal(SIGPIPE, SIG_IGN);
  try {
    run(request_of({argv + 1, argv + argc}));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
