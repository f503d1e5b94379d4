// SPDX-License-Identifier: Apache-2.0
#include "exec/spill_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "terrace/lifetimes.hpp"

namespace terrace {
namespace {

constexpr TierId kFast{0}, kSlow{1};

std::vector<TensorId> operands_of(const Kernel& kernel) {
  std::vector<TensorId> all;
  for (const Operand& operand : kernel.inputs) all.push_back(operand.tensor);
  for (const Operand& operand : kernel.outputs) all.push_back(operand.tensor);
  if (kernel.workspace) all.push_back(kernel.workspace);
  return all;
}

class Spiller {
 public:
  Spiller(const Graph& graph, const Machine& machine, const SpillOptions& options)
      : graph_(graph),
        machine_(machine),
        options_(options),
        lifetimes_(graph),
        tensors_(graph.tensors.size()) {
    plan_.planner = "spill";
    plan_.graph = fingerprint(graph);
    plan_.machine = fingerprint(machine);
  }

  Plan run() && {
    lay_out();
    for (std::uint32_t k = 0; k < graph_.kernels.size(); ++k) run_kernel({k});
    finish();
    plan_.budget = {Bytes{fast_}, Bytes{slow_}};
    return std::move(plan_);
  }

 private:
  struct Known {
    std::uint64_t slow_offset = 0;
    std::optional<std::uint64_t> fast_offset;  // while it is there
    bool has_slow = false, slow_current = false, pinned = false;
  };

  Known& known(TensorId id) { return tensors_[id.index]; }
  std::uint64_t size(TensorId id, TierId tier) const {
    return round_up(graph_[id].bytes, machine_[tier].granularity).count;
  }
  bool is_result(TensorId id) const {
    return std::find(graph_.results.begin(), graph_.results.end(), id) != graph_.results.end();
  }
  // An operand that lies in slow memory and may be used there.
  bool used_in_slow(TensorId id) const {
    const Known& tensor = tensors_[id.index];
    return options_.in_place > 0 && id.index % options_.in_place == 0 && !tensor.pinned && !is_result(id);
  }

  // Inputs and results stay in fast memory, at its begin; then there is room for any one kernel.
  void lay_out() {
    for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
      const Tensor& tensor = graph_.tensors[i];
      Known& it = known({i});
      it.slow_offset = slow_;
      slow_ += size({i}, kSlow);
      const bool input = tensor.kind == TensorKind::input && !tensor.persistent;
      if (input || (is_result({i}) && !tensor.persistent)) {
        it.pinned = true;
        it.fast_offset = pinned_;
        pinned_ += size({i}, kFast);
      }
      if (input) plan_.start.push_back({{i}, kFast, *it.fast_offset});
      if (!input && it.pinned) emit(Alloc{{i}, kFast, *it.fast_offset});
      if (!tensor.persistent || input) continue;
      it.has_slow = it.slow_current = true;
      const bool filled = tensor.kind == TensorKind::input && !machine_[kSlow].addressable;
      if (filled) {  // the verifier wants inputs where they can be filled
        it.pinned = true;
        it.has_slow = it.slow_current = false;
        it.fast_offset = pinned_;
        pinned_ += size({i}, kFast);
      }
      plan_.start.push_back(filled ? Alloc{{i}, kFast, *it.fast_offset} : Alloc{{i}, kSlow, it.slow_offset});
    }
    fast_ = pinned_;
    for (const Kernel& kernel : graph_.kernels) {
      std::set<TensorId> unique;
      std::uint64_t needed = pinned_;
      for (const TensorId id : operands_of(kernel)) {
        if (unique.insert(id).second && !known(id).pinned && !used_in_slow(id)) needed += size(id, kFast);
      }
      fast_ = std::max(fast_, needed);
    }
  }

  void run_kernel(KernelId id) {
    const Kernel& kernel = graph_[id];
    const std::vector<TensorId> operands = operands_of(kernel);
    evict_all_but({operands.begin(), operands.end()});
    bring(kernel, operands);
    Run run{id, 0, {}};
    for (const TensorId operand : operands) run.tiers.push_back(used_in_slow(operand) ? kSlow : kFast);
    emit(std::move(run));
    for (const Operand& output : kernel.outputs)
      known(output.tensor).slow_current = used_in_slow(output.tensor);
    for (const TensorId operand : std::set<TensorId>(operands.begin(), operands.end())) {
      const Tensor& tensor = graph_[operand];
      if (!tensor.persistent && !known(operand).pinned && lifetimes_[operand].last == id.index) drop(operand);
    }
  }

  // Everything that leaves travels at once.
  void evict_all_but(const std::set<TensorId>& used) {
    std::vector<TensorId> leaving;
    for (const auto& [offset, id] : fast_regions()) {
      if (!known(id).pinned && used.count(id) == 0) leaving.push_back(id);
    }
    evict(leaving);
  }

  void evict(const std::vector<TensorId>& leaving) {
    std::vector<TensorId> written;
    for (const TensorId id : leaving) {
      if (known(id).slow_current) continue;
      ensure_slow(id);
      written.push_back(id);
      known(id).slow_current = true;
    }
    copy(std::move(written), kFast, kSlow);
    for (const TensorId id : leaving) {
      emit(Free{id, kFast});
      known(id).fast_offset.reset();
    }
  }

  // All at once; what lies side by side in both tiers as one.
  void copy(std::vector<TensorId> ids, TierId from, TierId to) {
    std::sort(ids.begin(), ids.end());
    const std::uint32_t first = ticket_;
    for (std::size_t i = 0; i < ids.size();) {
      Copy together{{ids[i]}, from, to, ticket_++};
      while (++i < ids.size() && are_neighbours(ids[i - 1], ids[i])) together.tensors.push_back(ids[i]);
      emit(std::move(together));
    }
    for (std::uint32_t ticket = first; ticket < ticket_; ++ticket) emit(Wait{ticket});
  }

  bool are_neighbours(TensorId a, TensorId b) const {
    const Known &left = tensors_[a.index], &right = tensors_[b.index];
    return *left.fast_offset + size(a, kFast) == *right.fast_offset &&
           left.slow_offset + size(a, kSlow) == right.slow_offset;
  }

  void ensure_slow(TensorId id) {
    if (known(id).has_slow) return;
    emit(Alloc{id, kSlow, known(id).slow_offset});
    known(id).has_slow = true;
  }

  void bring(const Kernel& kernel, const std::vector<TensorId>& operands) {
    if (!places_fit(operands)) {
      std::vector<TensorId> all;
      for (const auto& [offset, id] : fast_regions()) {
        if (!known(id).pinned) all.push_back(id);
      }
      evict(all);  // holes between what stayed
    }
    std::vector<TensorId> read;
    for (const TensorId id : std::set<TensorId>(operands.begin(), operands.end())) {
      Known& it = known(id);
      if (it.pinned) continue;
      if (used_in_slow(id)) {
        ensure_slow(id);
        continue;
      }
      if (it.fast_offset) continue;
      it.fast_offset = first_fit(size(id, kFast));
      emit(Alloc{id, kFast, *it.fast_offset});
      const bool is_read = std::any_of(kernel.inputs.begin(), kernel.inputs.end(),
                                       [&](const Operand& operand) { return operand.tensor == id; });
      if (is_read) read.push_back(id);
    }
    copy(std::move(read), kSlow, kFast);
  }

  bool places_fit(const std::vector<TensorId>& operands) {
    std::vector<TensorId> tried;
    bool fits = true;
    for (const TensorId id : std::set<TensorId>(operands.begin(), operands.end())) {
      if (known(id).pinned || used_in_slow(id) || known(id).fast_offset) continue;
      const std::uint64_t offset = first_fit(size(id, kFast));
      fits = fits && offset + size(id, kFast) <= fast_;
      known(id).fast_offset = offset;
      tried.push_back(id);
    }
    for (const TensorId id : tried) known(id).fast_offset.reset();
    return fits;
  }

  void drop(TensorId id) {
    Known& it = known(id);
    if (it.fast_offset) emit(Free{id, kFast});
    if (it.has_slow) emit(Free{id, kSlow});
    it.fast_offset.reset();
    it.has_slow = it.slow_current = false;
  }

  void finish() { evict_all_but({}); }

  std::map<std::uint64_t, TensorId> fast_regions() const {
    std::map<std::uint64_t, TensorId> regions;
    for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].fast_offset) regions[*tensors_[i].fast_offset] = {i};
    }
    return regions;
  }

  std::uint64_t first_fit(std::uint64_t bytes) const {
    std::uint64_t end = pinned_;
    for (const auto& [offset, id] : fast_regions()) {
      if (offset >= end + bytes) break;
      end = std::max(end, offset + size(id, kFast));
    }
    return end;
  }

  void emit(Instruction instruction) { plan_.instructions.push_back(std::move(instruction)); }

  const Graph& graph_;
  const Machine& machine_;
  const SpillOptions options_;
  const Lifetimes lifetimes_;
  std::vector<Known> tensors_;
  std::uint64_t pinned_ = 0, fast_ = 0, slow_ = 0;
  std::uint32_t ticket_ = 0;
  Plan plan_;
};

}  // namespace

Machine two_tiers(const std::string& slow_spec, Bytes fast_granularity, Bytes slow_granularity,
                  bool slow_addressable) {
  using namespace literals;
  Machine machine;
  machine.name = "two tiers";
  machine.tiers.resize(2);
  machine.tiers[0] = {.name = "dram",
                      .capacity = 1_GiB,
                      .addressable = true,
                      .read = {1e10},
                      .write = {1e10},
                      .latency = Seconds{0},
                      .granularity = fast_granularity,
                      .price = {},
                      .spec = "dram:1GiB"};
  machine.tiers[1] = {.name = "slow",
                      .capacity = 1_GiB,
                      .addressable = slow_addressable,
                      .read = {1e9},
                      .write = {1e9},
                      .latency = Seconds{0},
                      .granularity = slow_granularity,
                      .price = {},
                      .spec = slow_spec};
  machine.links = {{{0}, {1}, {{1_MiB, {1e9}}}}, {{1}, {0}, {{1_MiB, {1e9}}}}};
  machine.compute = {"processor", 1, 1e11};
  return machine;
}

Plan spill_plan(const Graph& graph, const Machine& machine, const SpillOptions& options) {
  return Spiller(graph, machine, options).run();
}

}  // namespace terrace
