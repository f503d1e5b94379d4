#include "report/tensors.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "base/check.hpp"
#include "profile/roofline.hpp"
#include "terrace/lifetimes.hpp"

namespace terrace {
namespace {

/// A range of values up to and including `most`.
struct Range {
  const char* label;
  double most;
};
constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr std::array<Range, 5> kAccesses{
    {{"below 0.5", 0.5}, {"1-2", 2.5}, {"3-10", 10.5}, {"11-100", 100.5}, {"over 100", kAny}}};
/// The first range is for tensors that outlive the step.
constexpr std::array<Range, 6> kLifetimes{{{"outlives the step", 0},
                                           {"1 layer", 1},
                                           {"2-4 layers", 4},
                                           {"5-16 layers", 16},
                                           {"17-64 layers", 64},
                                           {"over 64 layers", kAny}}};
constexpr std::array<Range, 5> kSizes{{{"below 4 KiB", 4096 - 1},
                                       {"4-64 KiB", (64 << 10) - 1},
                                       {"64 KiB-1 MiB", (1 << 20) - 1},
                                       {"1-16 MiB", (16 << 20) - 1},
                                       {"from 16 MiB", kAny}}};

template <std::size_t N>
std::size_t place(const std::array<Range, N>& ranges, double value) {
  std::size_t i = 0;
  while (value > ranges[i].most) ++i;
  return i;
}

template <std::size_t N, class Value>
Distribution distribution(const std::array<Range, N>& ranges, std::span<const TensorFacts> facts,
                          Value value) {
  Distribution buckets;
  for (const Range& range : ranges) buckets.push_back({range.label, 0, 0, {}, {}});
  for (const TensorFacts& tensor : facts) {
    Bucket& bucket = buckets[place(ranges, value(tensor))];
    ++bucket.tensors;
    bucket.bytes += tensor.bytes;
    if (tensor.bytes >= kSmall) continue;
    ++bucket.small_tensors;
    bucket.small_bytes += tensor.bytes;
  }
  return buckets;
}

TensorId operand_of(const Kernel& kernel, std::size_t operand) {
  const std::size_t inputs = kernel.inputs.size();
  if (operand < inputs) return kernel.inputs[operand].tensor;
  if (operand < inputs + kernel.outputs.size()) return kernel.outputs[operand - inputs].tensor;
  return kernel.workspace;
}

/// Returns the accesses of each tensor, summed over the kernels that use it; a kernel counts once.
std::vector<double> accesses_of_tensors(const Graph& graph, const KernelAccesses& counted) {
  std::vector<double> sums(graph.tensors.size());
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    std::set<TensorId> seen;
    for (std::size_t i = 0; i < operand_count(graph.kernels[k]); ++i) {
      const TensorId tensor = operand_of(graph.kernels[k], i);
      if (!seen.insert(tensor).second) continue;
      const Accesses one = counted.empty() ? assumed_accesses(graph, {k}, i) : counted[k][i];
      sums[tensor.index] += one.reads + one.writes;
    }
  }
  return sums;
}

std::string layers_using(const Lifetimes& lifetimes, const Lifetime& lifetime) {
  std::set<std::uint32_t> steps;
  for (const KernelId user : lifetime.users) steps.insert(lifetimes.layer_step(user));
  std::string text;
  for (const std::uint32_t step : steps) text += std::to_string(step) + ' ';
  return text;
}

}  // namespace

std::vector<TensorFacts> tensor_facts(const Graph& graph, const KernelAccesses& counted) {
  check(counted.empty() || counted.size() == graph.kernels.size(), "the counts are of this graph");
  const Lifetimes lifetimes(graph);
  const std::vector<double> accesses = accesses_of_tensors(graph, counted);
  std::vector<TensorFacts> facts;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const Lifetime& lifetime = lifetimes[{i}];
    if (!lifetime.used) continue;
    facts.push_back({graph.tensors[i].bytes, lifetime.first, lifetime.last,
                     graph.tensors[i].persistent ? 0 : lifetime.layer_steps(),
                     layers_using(lifetimes, lifetime), accesses[i]});
  }
  return facts;
}

Distribution by_lifetime(std::span<const TensorFacts> facts) {
  return distribution(kLifetimes, facts, [](const TensorFacts& tensor) { return double(tensor.layers); });
}

Distribution by_size(std::span<const TensorFacts> facts) {
  return distribution(kSizes, facts, [](const TensorFacts& tensor) { return double(tensor.bytes.count); });
}

Distribution by_accesses(std::span<const TensorFacts> facts) {
  return distribution(kAccesses, facts, [](const TensorFacts& tensor) { return tensor.accesses; });
}

std::size_t access_bucket(double accesses) { return place(kAccesses, accesses); }
std::size_t lifetime_bucket(std::uint32_t layers) { return place(kLifetimes, layers); }

Footprint footprint(std::span<const TensorFacts> facts, Which which) {
  std::map<std::uint32_t, Footprint> begins, ends;
  for (const TensorFacts& tensor : facts) {
    if (which == Which::small && tensor.bytes >= kSmall) continue;
    for (Footprint* change : {&begins[tensor.first], &ends[tensor.last + 1]}) {
      change->original += tensor.bytes;
      change->in_pages += round_up(tensor.bytes, kSmall);
    }
    begins.try_emplace(tensor.last + 1);
  }
  Footprint live, peak;
  for (const auto& [moment, begun] : begins) {
    const Footprint ended = ends.contains(moment) ? ends[moment] : Footprint{};
    live.original = live.original + begun.original - ended.original;
    live.in_pages = live.in_pages + begun.in_pages - ended.in_pages;
    peak.original = std::max(peak.original, live.original);
    peak.in_pages = std::max(peak.in_pages, live.in_pages);
  }
  return peak;
}

}  // namespace terrace
