// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "graph/tokens.hpp"
#include "graph/variant.hpp"
#include "plan/verify_state.hpp"

namespace terrace {

bool Verification::fits_the_kernel(const Run& run) {
  const Kernel& kernel = graph_[run.kernel];
  const std::size_t variants = variant_count(kernel);
  if (run.variant >= variants) {
    report(fmt::format("kernel {} has {} variants, and number {} is asked for", kernel.name, variants,
                       run.variant));
    return false;
  }
  const std::size_t operands = kernel.inputs.size() + kernel.outputs.size() + (kernel.workspace ? 1 : 0);
  if (run.tiers.size() != operands) {
    report(fmt::format("kernel {} has {} operands, and {} tiers are stated", kernel.name, operands,
                       run.tiers.size()));
    return false;
  }
  for (const TierId tier : run.tiers) {
    if (!known(tier)) return false;
  }
  return true;
}

void Verification::operator()(const Run& run) {
  if (run.engine.index >= machine_.engine_count()) {
    return report(
        fmt::format("it names engine {}, but the machine has {}", run.engine.index, machine_.engine_count()));
  }
  if (run.kernel.index >= graph_.kernels.size()) {
    return report(
        fmt::format("it names kernel {}, but the graph has {}", run.kernel.index, graph_.kernels.size()));
  }
  issue(clocks_.lane_of(run.engine), run.after);
  if (!run.ticket) {
    clocks_.wait(clocks_.ended(at_work_.lane));
  } else if (ticket_places_.contains(*run.ticket)) {
    report(fmt::format("ticket #{} is used a second time", *run.ticket));
  } else {
    give_ticket(*run.ticket);
  }
  take_tokens(run.kernel);
  has_run_[run.kernel.index] = true;
  if (fits_the_kernel(run)) use_operands(graph_[run.kernel], run);
}

void Verification::use_operands(const Kernel& kernel, const Run& run) {
  const auto wanted = values_.read_by(run.kernel), made = values_.written_by(run.kernel);
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) read_input(kernel, run, i, wanted[i]);
  const TierId* output_tiers = run.tiers.data() + kernel.inputs.size();
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    write_to(kernel, run.engine, kernel.outputs[i].tensor, output_tiers[i], "writes");
    stays_in_place(kernel, run, i);
  }
  if (kernel.workspace) use_workspace(kernel, run);

  // Only now: reading an input comes before writing over it, and nobody waits for itself.
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i)
    regions_.add_reader(kernel.inputs[i].tensor, run.tiers[i], at_work_);
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i)
    regions_.set_writer(kernel.outputs[i].tensor, output_tiers[i], at_work_, made[i]);
  if (kernel.workspace && !runs_without_workspace(kernel, run.variant))
    regions_.set_writer(kernel.workspace, run.tiers.back(), at_work_, kUndefined);
}

void Verification::take_tokens(KernelId kernel) {
  if (tokens_.empty()) return;
  std::vector<TensorId> seen;
  for (const auto* operands : {&graph_[kernel].inputs, &graph_[kernel].outputs}) {
    for (const Operand& operand : *operands) {
      const auto token = tokens_.find(operand.tensor.index);
      if (token == tokens_.end() || std::count(seen.begin(), seen.end(), operand.tensor) != 0) continue;
      seen.push_back(operand.tensor);
      TokenUses& uses = token->second;
      const auto& order = uses.kernels;
      if (!LaneClocks::is_over(uses.last, clocks_.started())) {
        report(fmt::format("kernel {} runs beside {}, and {} stands for state that both change",
                           graph_[kernel].name, user(uses.last), name(operand.tensor)));
      }
      uses.last = at_work_;
      if (uses.done < order.size() && order[uses.done] == kernel) {
        ++uses.done;
        continue;
      }
      const auto turn = std::find(order.begin(), order.end(), kernel) - order.begin();
      const bool again = static_cast<std::size_t>(turn) < uses.done;
      report(fmt::format(
          "kernel {} runs {}, and {} stands for state that no copy of it brings back", graph_[kernel].name,
          again ? std::string("again") : fmt::format("before {}", graph_[order[uses.done]].name),
          name(operand.tensor)));
      if (!again) uses.done = static_cast<std::size_t>(turn) + 1;
    }
  }
}

/// Returns the region if the kernel may touch it at all, or null after saying why not.
const AbstractRegion* Verification::usable_region(const Kernel& kernel, EngineId engine, TensorId tensor,
                                                  TierId tier, const char* does) {
  const AbstractRegion& region = regions_.at(tensor, tier);
  const auto fail = [&](const std::string& why) {
    report(fmt::format("kernel {} {} {} in {}, {}", kernel.name, does, name(tensor), name(tier), why));
    return nullptr;
  };
  if (!region.exists) return fail("where it has no region");
  if (!machine_.reaches(engine, tier)) {
    const bool first = engine == EngineId{};
    return fail(
        fmt::format("which {} cannot use in place", first ? "kernels" : machine_.compute_of(engine).name));
  }
  if (const auto who = filling(region, clocks_.started()))
    return fail(fmt::format("which {} that was not waited for", *who));
  return &region;
}

void Verification::read_input(const Kernel& kernel, const Run& run, std::size_t input, ValueNumber wanted) {
  const TensorId tensor = kernel.inputs[input].tensor;
  const TierId tier = run.tiers[input];
  const AbstractRegion* region = usable_region(kernel, run.engine, tensor, tier, "reads");
  if (region == nullptr || region->holds == wanted) return;
  report(fmt::format("kernel {} reads {} of {} in {}, which holds {}", kernel.name, value_text(wanted),
                     name(tensor), name(tier), value_text(region->holds)));
}

void Verification::write_to(const Kernel& kernel, EngineId engine, TensorId tensor, TierId tier,
                            const char* does) {
  if (usable_region(kernel, engine, tensor, tier, does) == nullptr) return;
  const auto who = reading(tensor, tier, clocks_.started());
  if (!who) return;
  report(fmt::format("kernel {} {} {} in {} while {} it", kernel.name, does, name(tensor), name(tier), *who));
}

/// A tensor that is read and written is one piece of memory to its kernel.
void Verification::stays_in_place(const Kernel& kernel, const Run& run, std::size_t output) {
  const TensorId tensor = kernel.outputs[output].tensor;
  const TierId tier = run.tiers[kernel.inputs.size() + output];
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
    if (kernel.inputs[i].tensor != tensor || run.tiers[i] == tier) continue;
    report(fmt::format("kernel {} works on {} in place, but reads it in {} and writes it in {}", kernel.name,
                       name(tensor), name(run.tiers[i]), name(tier)));
  }
}

void Verification::use_workspace(const Kernel& kernel, const Run& run) {
  if (runs_without_workspace(kernel, run.variant)) return;
  write_to(kernel, run.engine, kernel.workspace, run.tiers.back(), "works in");
  if (kernel.variants.empty()) return;
  const Variant& variant = kernel.variants[run.variant];
  const Bytes there = graph_[kernel.workspace].bytes;
  if (variant.workspace <= there) return;
  report(fmt::format("kernel {} as variant {} needs {} of workspace, and {} has {}", kernel.name,
                     variant.name, to_string(variant.workspace), name(kernel.workspace), to_string(there)));
}

}  // namespace terrace
