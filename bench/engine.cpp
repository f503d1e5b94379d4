// Claim: a training step takes less time and less memory than in PyTorch, both at their best on this
// processor.
//
// Contenders are processes that run one step per request (bench/torch/rival.py, and this program with
// --contender), so that their steps alternate and each has a resident peak of its own. They have the same
// network, batch, optimizer and number of threads, fp32 and synthetic data. PyTorch runs in each of its
// layouts, and the faster one counts.
#include <sys/resource.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "line_process.hpp"
#include "report.hpp"
#include "terrace/models.hpp"
#include "terrace/trainer.hpp"

namespace terrace::bench {
namespace {

using nlohmann::json;

constexpr unsigned kThreads = 2;
constexpr int kWarmUp = 3;

struct Case {
  std::string model;
  std::int64_t batch = 0;
  std::optional<std::int64_t> sequence;
  std::vector<std::string> layouts;
  double aim = 1.2;
  std::string dropout{};  ///< the published dropout, where PyTorch's network needs it as an option

  std::string name() const { return model + " " + std::to_string(batch); }
};

std::vector<Case> cases() {
  const std::vector<std::string> images{"nchw", "channels_last"}, rows{"nchw"};
  return {{"resnet50", 16, {}, images, 1.5},    {"resnet50", 32, {}, images, 1.5},
          {"vgg16", 8, {}, images, 1.2, "0.5"}, {"mobilenet", 32, {}, images},
          {"gpt2", 4, 256, rows, 1.2, "0.1"},   {"lstm", 20, {}, rows, 1.2, "0.5"}};
}

// ---- ours, as a contender ----

std::uint64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

void fill_inputs(Trainer& trainer, const Graph& graph) {
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::input || tensor.persistent) continue;
    if (tensor.type == DataType::f32) {
      const auto values = trainer.input(tensor.name);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i % 9973));
    } else {
      const auto values = trainer.integer_input(tensor.name);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 31 % 1000);
    }
  }
}

int obey(const std::string& model, std::int64_t batch, std::int64_t sequence) {
  ModelOptions options;
  options.batch = batch;
  if (sequence > 0) options.sequence = sequence;
  const Graph graph = build_model(model, options).value();
  Trainer trainer =
      Trainer::start(compile(graph, kThreads).value(), {.seed = 1, .learning_rate = 0.001F}).value();
  std::cout << json{{"ready", true},
                    {"parameters", parameters(graph)},
                    {"graph_peak_bytes", trainer.program().peak.count},
                    {"arena_bytes", trainer.program().arena.count}}
            << std::endl;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    if (line == "memory") {
      std::cout << json{{"peak_rss_bytes", peak_resident_bytes()}} << std::endl;
      continue;
    }
    fill_inputs(trainer, trainer.program().graph);
    const auto start = std::chrono::steady_clock::now();
    trainer.step();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::cout << json{{"seconds", took.count()}, {"loss", trainer.result(0)[0]}} << std::endl;
  }
  return 0;
}

// ---- the comparison ----

class Contender {
 public:
  Contender(std::string name, const std::vector<std::string>& command,
            const std::vector<std::string>& settings)
      : name_(std::move(name)), process_(command, settings), ready_(json::parse(process_.read_line())) {
    for (int i = 0; i < kWarmUp; ++i) step();
    seconds_.clear();
  }

  double step() {
    const json answer = json::parse(process_.ask("step"));
    if (!std::isfinite(answer.at("loss").get<double>()))
      throw std::runtime_error(name_ + " lost its way: the loss is no number");
    seconds_.push_back(answer.at("seconds"));
    return seconds_.back();
  }

  const std::string& name() const { return name_; }
  const json& ready() const { return ready_; }
  const std::vector<double>& seconds() const { return seconds_; }
  double memory() { return json::parse(process_.ask("memory")).at("peak_rss_bytes"); }

 private:
  std::string name_;
  LineProcess process_;
  json ready_;
  std::vector<double> seconds_;
};

std::unique_ptr<Contender> ours(const Case& one, const std::string& program) {
  return std::make_unique<Contender>(
      "terrace",
      std::vector<std::string>{program, "--contender", one.model, std::to_string(one.batch),
                               std::to_string(one.sequence.value_or(0))},
      std::vector<std::string>{});
}

std::unique_ptr<Contender> rival(const Case& one, const std::string& layout) {
  std::vector<std::string> command{"/usr/bin/python3", "bench/torch/rival.py",    "--model",  one.model,
                                   "--batch",          std::to_string(one.batch), "--layout", layout,
                                   "--threads",        std::to_string(kThreads)};
  if (one.sequence) command.insert(command.end(), {"--sequence", std::to_string(*one.sequence)});
  if (!one.dropout.empty()) command.insert(command.end(), {"--dropout", one.dropout});
  const std::string threads = std::to_string(kThreads);
  return std::make_unique<Contender>(
      "pytorch " + layout, command,
      std::vector<std::string>{"OPENBLAS_CORETYPE=SkylakeX", "OPENBLAS_NUM_THREADS=" + threads,
                               "OMP_NUM_THREADS=" + threads, "MALLOC_MMAP_THRESHOLD_=1000000000000",
                               "MALLOC_TRIM_THRESHOLD_=1000000000000", "MALLOC_TOP_PAD_=67108864"});
}

/// Runs the steps of all contenders in turn.
json compare(const Case& one, const std::string& program, int rounds) {
  std::vector<std::unique_ptr<Contender>> all;
  all.push_back(ours(one, program));
  for (const std::string& layout : one.layouts) all.push_back(rival(one, layout));
  for (const auto& contender : all) {
    if (contender->ready().at("parameters") != all[0]->ready().at("parameters")) {
      throw std::runtime_error(one.name() + ": " + contender->name() + " trains another network");
    }
  }
  for (int i = 0; i < rounds; ++i) {
    for (const auto& contender : all) contender->step();
  }
  const auto faster = [](const auto& a, const auto& b) {
    return median(a->seconds()) < median(b->seconds());
  };
  const auto& best = *std::min_element(all.begin() + 1, all.end(), faster);
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    ratios.push_back(best->seconds()[static_cast<std::size_t>(i)] /
                     all[0]->seconds()[static_cast<std::size_t>(i)]);
  }
  json row{{"case", one.name()},
           {"aim", one.aim},
           {"ratio", median(ratios)},
           {"spread", spread(ratios)},
           {"best_rival", best->name()},
           {"rounds", rounds},
           {"graph_peak_bytes", all[0]->ready().at("graph_peak_bytes")},
           {"arena_bytes", all[0]->ready().at("arena_bytes")}};
  for (const auto& contender : all) {
    row["contenders"][contender->name()] = {{"median_seconds", median(contender->seconds())},
                                            {"spread", spread(contender->seconds())},
                                            {"peak_rss_bytes", contender->memory()}};
  }
  return row;
}

void print_row(const json& row) {
  const auto& mine = row.at("contenders").at("terrace");
  const auto& best = row.at("contenders").at(row.at("best_rival").get<std::string>());
  const double gib = 1 << 30;
  std::printf(
      "%-13s terrace %7.3f s  %s %7.3f s  ratio %.2f (%.2f to %.2f, aim %.1f)  resident %.2f and %.2f GiB, "
      "graph peak %.2f\n",
      row.at("case").get<std::string>().c_str(), mine.at("median_seconds").get<double>(),
      row.at("best_rival").get<std::string>().c_str(), best.at("median_seconds").get<double>(),
      row.at("ratio").get<double>(), row.at("spread")[0].get<double>(), row.at("spread")[1].get<double>(),
      row.at("aim").get<double>(), mine.at("peak_rss_bytes").get<double>() / gib,
      best.at("peak_rss_bytes").get<double>() / gib, row.at("graph_peak_bytes").get<double>() / gib);
  std::fflush(stdout);
}

void run(const std::string& program, bool quick, const std::string& only) {
  json rows = json::array();
  std::vector<double> against_aim;
  for (const Case& one : cases()) {
    if (!only.empty() && one.model != only) continue;
    rows.push_back(compare(one, program, quick ? 3 : 9));
    print_row(rows.back());
    against_aim.push_back(rows.back().at("ratio").get<double>() / one.aim);
  }
  if (rows.empty()) throw std::runtime_error("no such model here: " + only);
  print_result("a training step against PyTorch's best",
               "resnet50 at least 1.5, the others 1.2 times as fast",
               *std::min_element(against_aim.begin(), against_aim.end()), spread(against_aim), rows);
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  using namespace terrace::bench;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() == 4 && arguments[0] == "--contender") {
      return obey(arguments[1], std::stoll(arguments[2]), std::stoll(arguments[3]));
    }
    bool quick = false;
    std::string only;
    for (const std::string& argument : arguments)
      argument == "--quick" ? void(quick = true) : void(only = argument);
    run(argv[0], quick, only);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
