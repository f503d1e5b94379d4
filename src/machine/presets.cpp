// SPDX-License-Identifier: Apache-2.0
#include "machine/presets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/similar.hpp"

namespace terrace {
namespace presets {

using namespace literals;

Link copy_link(const Machine& machine, TierId from, TierId to, Sharing sharing) {
  const BytesPerSecond rate = std::min(machine[from].read, machine[to].write);
  return {from, to, {{1_MiB, rate}}, sharing.both_ways, sharing.compute_loss, sharing.threads};
}

std::vector<SizedRate> rates_with_overhead(BytesPerSecond rate, Seconds overhead) {
  std::vector<SizedRate> rates;
  for (const Bytes size : {64_KiB, 1_MiB, 16_MiB}) rates.push_back({size, size / (overhead + size / rate)});
  return rates;
}

namespace {

std::vector<Preset> all() {
  std::vector<Preset> presets;
  for (const auto& family : {optane(), numa(), gpu()})
    presets.insert(presets.end(), family.begin(), family.end());
  return presets;
}

}  // namespace
}  // namespace presets

std::vector<MachineInfo> machine_presets() {
  std::vector<MachineInfo> infos;
  for (const presets::Preset& preset : presets::all())
    infos.push_back({std::string(preset.name), std::string(preset.summary)});
  return infos;
}

Result<Machine> machine_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const presets::Preset& preset : presets::all()) {
    if (preset.name != name) {
      names.push_back(preset.name);
      continue;
    }
    Machine machine = preset.make();
    machine.name = preset.name;
    return machine;
  }
  const auto close = similar(name, names);
  return Error{ErrorCode::invalid_argument,
               close.empty() ? fmt::format("there is no machine '{}': there are {}", name, enumerated(names))
                             : fmt::format("there is no machine '{}': did you mean {}?", name,
                                           enumerated(close, "or"))};
}

}  // namespace terrace
