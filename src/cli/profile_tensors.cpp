// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_tensors.hpp"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <memory>

#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/progress.hpp"
#include "cli/workload_options.hpp"
#include "terrace/pipeline.hpp"
#include "train/synthetic_data.hpp"

namespace terrace::cli {
namespace {

constexpr Bytes kPage{4096};

template <class Work>
Seconds time_of(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::steady_clock::now() - begin;
}

/// One step to touch memory and code for the first time, one as ever, and one in which accesses are counted.
KernelAccesses count_accesses(Trainer& trainer, TensorProfile& profile, ProgressLine& line) {
  SyntheticData data(trainer.program().graph, 0);
  for (std::uint64_t i = 0; i < 2; ++i) {
    line.show(fmt::format("step {}/3", i + 1));
    data.fill(i, trainer);
    profile.step = time_of([&] { trainer.step(); });
  }
  line.show("step 3/3, counting accesses");
  data.fill(2, trainer);
  KernelAccesses counted;
  profile.counted_step = time_of([&] { counted = expect(trainer.counted_step()); });
  for (const auto& operands : counted) {
    profile.operands += operands.size();
    for (const Accesses& operand : operands) profile.watched += operand.pages > 0 ? 1 : 0;
  }
  return counted;
}

KernelAccesses count_where_possible(Program program, TensorProfile& profile, ProgressLine& line) {
  line.show(fmt::format("taking {} of memory", readable(program.arena)));
  auto trainer = Trainer::start(std::move(program), {});
  if (!trainer) {
    profile.not_counted = trainer.error().message;
    return {};
  }
  const KernelAccesses counted = count_accesses(*trainer, profile, line);
  remember_accesses(trainer->program(), counted, shown_on(line));
  return counted;
}

TensorProfile profile_tensors_of(const ProfileRequest& request, ProgressLine& line) {
  line.show("building and choosing layouts");
  const Graph graph = request.training_graph();
  Program program = aligned(expect(compile(graph, request.threads)), kPage);
  const Graph compiled = program.graph;
  TensorProfile profile;
  profile.threads = program.threads;
  const KernelAccesses counted = count_where_possible(std::move(program), profile, line);
  line.show("looking at pages");
  profile.facts = tensor_facts(compiled, counted);
  const auto share = [&](Layout layout) { return sharing(profile.facts, lay_out(profile.facts, layout)); };
  profile.as_allocated = share(Layout::allocation_order);
  profile.grouped = share(Layout::grouped);
  profile.all = footprint(profile.facts, Which::all);
  profile.small = footprint(profile.facts, Which::small);
  return profile;
}

/// Opened before the work starts, so that a wrong name is met at once.
std::ofstream open_plot(const std::string& name) {
  std::ofstream file;
  if (name.empty()) return file;
  file.open(name);
  if (!file) throw BadInput("cannot write " + name + ": name a writable file");
  return file;
}

}  // namespace

void profile_tensors(const ProfileRequest& request) {
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  std::ofstream plot = open_plot(request.plot);
  ProgressLine line;
  const TensorProfile profile = profile_tensors_of(request, line);
  line.clear();
  if (!request.plot.empty() && !(plot << drawing(request, profile) << std::flush))
    throw BadInput("cannot write " + request.plot + ": is the disk full?");
  json ? json->write(to_json(request, profile)) : print(request, profile);
}

}  // namespace terrace::cli
