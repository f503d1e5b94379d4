// SPDX-License-Identifier: Apache-2.0
#include "profile/this_machine.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <optional>

#include "base/fingerprint.hpp"
#include "base/replace_file.hpp"
#include "base/system.hpp"
#include "profile/computer_name.hpp"
#include "profile/tier_sample.hpp"
#include "terrace/error.hpp"
#include "terrace/machine_file.hpp"

namespace terrace {
namespace {

namespace fs = std::filesystem;

constexpr auto kLongest = std::chrono::hours(24 * 30);

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_recent(const fs::path& file) {
  std::error_code missing;
  const auto written = fs::last_write_time(file, missing);
  return !missing && fs::file_time_type::clock::now() - written < kLongest;
}

/// The kept machine, unless what is there cannot be it.
std::optional<Machine> find(const fs::path& file, std::size_t tiers) {
  if (!is_recent(file)) return std::nullopt;
  auto machine = read_machine(file);
  if (!machine || machine->tiers.size() != tiers) return std::nullopt;
  return *std::move(machine);
}

void give_spec(MachineTier& tier, const TierSpec& spec) {
  tier.capacity = round_down(spec.capacity, tier.granularity);
  tier.spec = to_string(spec);
}

/// Sets the capacity of each tier to what there is now.
Result<Machine> fitted(Machine machine, const TierSpec& fast, const std::vector<TierSpec>& slow) {
  give_spec(machine.tiers[0], fast);
  for (std::size_t i = 0; i < slow.size(); ++i) give_spec(machine.tiers[i + 1], slow[i]);
  if (const auto valid = validate(machine); !valid) return valid.error();
  return machine;
}

/// Keeps the machine, and answers why it cannot be kept; nothing where it is. A machine that is not kept is
/// as good as one that is.
std::optional<std::string> try_to_keep(const Machine& machine, const fs::path& file) try {
  const auto kept = keep_machine(machine, file);
  return kept ? std::nullopt : std::optional(kept.error().message);
} catch (const EnvironmentError& error) {
  return error.what();
}

/// The machine in the file as it is to be used now, else a new one, which is kept there.
template <class Measure>
Result<Machine> kept_or_measured(const fs::path& file, const TierSpec& fast,
                                 const std::vector<TierSpec>& slow, const Measure& measure) {
  if (auto kept = find(file, slow.size() + 1)) return fitted(*std::move(kept), fast, slow);
  Result<Machine> machine = measure();
  if (!machine) return machine;
  if (const auto why = try_to_keep(*machine, file)) machine->source += "; not kept: " + *why;
  return machine;
}

/// A file for a machine of these tiers, of which `key` says what else its rates depend on.
fs::path file_for(const fs::path& folder, std::string name, std::string key,
                  const std::vector<TierSpec>& slow) {
  for (const TierSpec& spec : slow) {
    key += "\n" + rates_key(spec);
    name += fmt::format("-{}", to_string(spec.kind));
  }
  return folder / fmt::format("{}-{}.json", name, Fingerprint().add(key).text());
}

}  // namespace

Result<fs::path> machine_cache_folder() {
  // A relative one is to be ignored, says the XDG specification.
  if (const fs::path cache = variable("XDG_CACHE_HOME"); cache.is_absolute())
    return cache / "terrace/machines";
  if (const fs::path home = variable("HOME"); !home.empty()) return home / ".cache/terrace/machines";
  return Error{ErrorCode::invalid_argument,
               "there is no cache folder to keep the machine in: set XDG_CACHE_HOME or HOME"};
}

fs::path machine_cache_file(const fs::path& folder, const CalibrateOptions& options) {
  const ComputerName computer = computer_name();
  const unsigned threads = options.threads > 0 ? options.threads : computer.cores;
  return file_for(folder, "dram",
                  fmt::format("{}\n{}\n{}\n{}", computer.processor, computer.cores, computer.kernel, threads),
                  options.slow);
}

Result<void> keep_machine(const Machine& machine, const fs::path& file) {
  std::error_code refused;
  fs::create_directories(file.parent_path(), refused);
  if (refused) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("cannot make the folder {} ({}): set XDG_CACHE_HOME to one that can be written to",
                    file.parent_path().native(), refused.message())};
  }
  try {
    write_machine(machine, file);
    return {};
  } catch (const ResultError& error) {
    return error.error();
  }
}

Result<Machine> this_machine(const CalibrateOptions& options, const fs::path& folder) {
  return kept_or_measured(machine_cache_file(folder, options), dram_spec(), options.slow,
                          [&] { return calibrate(options); });
}

Result<Machine> this_device(const DeviceCalibrateOptions& options, const fs::path& folder) {
  const ComputerName computer = computer_name();
  std::string key = fmt::format("{}\n{}\n{}", rates_key(options.fast), computer.processor, computer.kernel);
  for (const std::string& gpu : probe_gpus()) key += "\n" + gpu;
  const fs::path file =
      file_for(folder, std::string(to_string(options.fast.kind)), std::move(key), options.slow);
  return kept_or_measured(file, options.fast, options.slow, [&] { return calibrate_device(options); });
}

Result<Machine> this_machine(const CalibrateOptions& options) {
  const auto folder = machine_cache_folder();
  if (folder) return this_machine(options, *folder);
  auto machine = calibrate(options);
  if (machine) machine->source += "; not kept: " + folder.error().message;
  return machine;
}

}  // namespace terrace
