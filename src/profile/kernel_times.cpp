#include "profile/kernel_times.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/check.hpp"

namespace terrace {
namespace {

Bytes touched(const Kernel& kernel) {
  Bytes sum;
  for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
    for (const Operand& operand : *operands) sum += operand.touched;
  }
  return sum;
}

/// `32x64x56x56:aBcd16b@200704,50176,896,16` -> `aBcd16b`
std::string_view short_layout(std::string_view layout) {
  if (layout.empty()) return "row";
  layout.remove_prefix(layout.find(':') + 1);
  return layout.substr(0, layout.find('@'));
}

void append_layouts(std::string& text, const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    if (!text.empty()) text += ' ';
    text += short_layout(operand.layout);
  }
}

}  // namespace

KernelTime& KernelTime::operator+=(const KernelTime& other) {
  kernels += other.kernels;
  time += other.time;
  flops += other.flops;
  touched += other.touched;
  bound += other.bound;
  return *this;
}

double KernelTime::flops_per_second() const { return time.count() > 0 ? flops / time.count() : 0; }
BytesPerSecond KernelTime::bandwidth() const { return time.count() > 0 ? touched / time : BytesPerSecond{}; }
double KernelTime::roofline_share() const { return time.count() > 0 ? bound / time : 0; }

std::vector<KernelTime> kernel_times(const Graph& graph, std::span<const Seconds> times, std::uint64_t steps,
                                     const Rates& rates) {
  check(times.size() == graph.kernels.size() && steps > 0, "every kernel was timed in some steps");
  std::vector<KernelTime> all;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Kernel& kernel = graph.kernels[i];
    const Bytes bytes = touched(kernel);
    all.push_back(
        {1, times[i] / static_cast<double>(steps), kernel.flops, bytes, rates.bound(kernel.flops, bytes)});
  }
  return all;
}

std::vector<OperationTime> by_operation(const Graph& graph, std::span<const KernelTime> kernels) {
  std::vector<OperationTime> all;
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::string& operation = graph.kernels[i].operation;
    const auto [place, is_new] = places.try_emplace(operation, all.size());
    if (is_new) all.push_back({operation, {}});
    all[place->second].all += kernels[i];
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.all.time > b.all.time; });
  return all;
}

std::string layouts_of(const Kernel& kernel) {
  std::string text;
  append_layouts(text, kernel.inputs);
  if (!text.empty()) text += ' ';
  text += '>';
  append_layouts(text, kernel.outputs);
  return text;
}

std::string implementation_of(const Kernel& kernel) {
  return kernel.variants.empty() || kernel.variants.front().name.empty() ? "own"
                                                                         : kernel.variants.front().name;
}

}  // namespace terrace
