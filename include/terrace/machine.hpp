// A machine: the tiers, the links and the compute of one computer, measured here or declared in a file.
//
// Plain data: nothing is opened. Tier 0 is the fastest and kernels can always use it in place. The presets
// are the machines of the papers (`source` says where every figure comes from); `calibrate`
// (src/profile/calibrate.hpp) measures this computer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"
#include "terrace/tier_spec.hpp"

namespace terrace {

struct MachineTier {
  std::string name;  ///< short, such as `dram`; unique in its machine
  Bytes capacity;
  bool addressable = true;     ///< kernels may use bytes in place
  BytesPerSecond read, write;  ///< of kernels in place, all threads together; else of the device
  Seconds latency{0};
  Bytes granularity{64};        ///< offsets and sizes of regions are multiples of it; a power of two
  std::optional<double> price;  ///< of a gigabyte, in any currency
  std::string spec;             ///< opens the tier on this computer; empty: it is somebody else's
  bool operator==(const MachineTier&) const = default;
};

/// Bandwidth of a link for transfers of one size.
struct SizedRate {
  Bytes size;
  BytesPerSecond rate;
  bool operator==(const SizedRate&) const = default;
};

/// What a number of copying threads makes of a link between memories: for whoever chooses that number, which
/// is `threads=` in the spec of the tier that is copied to.
struct ThreadedRate {
  unsigned threads = 1;
  BytesPerSecond rate;         ///< of large transfers, alone
  double compute_loss = 0;     ///< as of the link
  double while_computing = 1;  ///< as of the link
  bool operator==(const ThreadedRate&) const = default;
};

/// A way from one tier to another.
struct Link {
  TierId from, to;
  std::vector<SizedRate>
      rates;                ///< alone; sizes ascend, at least one. Between two sizes times are interpolated
  double both_ways = 1;     ///< share of the rate that is left while the opposite link is busy, too
  double compute_loss = 0;  ///< share of the kernels' speed that is lost while the link is busy
  unsigned threads = 1;     ///< copying threads the rates were measured with
  double while_computing = 1;                 ///< share of the rate that is left while kernels run
  std::vector<ThreadedRate> by_threads = {};  ///< numbers of threads ascend; empty: not measured
  bool operator==(const Link&) const = default;

  /// How long one transfer takes when nothing else happens. Above the largest size its rate stays; below the
  /// smallest the line through the first two goes on, so that a cost of every transfer remains.
  Seconds time(Bytes size) const;
};

struct Compute {
  std::string name;  ///< of the processor
  unsigned threads = 1;
  double flops_per_second = 0;  ///< single precision
  bool operator==(const Compute&) const = default;
};

struct Machine {
  std::string name;    ///< `this`, a preset, or what a file says
  std::string source;  ///< where the figures come from; with a date where they were measured
  std::vector<MachineTier> tiers;
  std::vector<Link> links;
  Compute compute;
  bool operator==(const Machine&) const = default;

  const MachineTier& operator[](TierId id) const { return tiers[id.index]; }
  /// The link between two tiers, or nullptr.
  const Link* link(TierId from, TierId to) const;
  /// Whether there are links in both directions: what goes from one to the other can come back.
  bool is_linked_both_ways(TierId one, TierId other) const;
};

/// Whether a machine is one. Names the first tier or link that is wrong: no tier, a fastest tier that is not
/// addressable, a link to nowhere or without rates, a rate or size that is not positive, two of one name or
/// between the same tiers, a share beyond its range, a spec that cannot be read, text that is not UTF-8.
Result<void> validate(const Machine& machine);

/// Changes whenever a figure or the name of a tier does; not with the machine's name, source and specs.
/// pre: the machine is valid
std::string fingerprint(const Machine& machine);

struct MachineInfo {
  std::string name, summary;
};
std::vector<MachineInfo> machine_presets();
/// A preset by its name. An unknown one fails with the closest names.
Result<Machine> machine_preset(std::string_view name);

/// Format: docs/formats/machine.md. Reading what was written gives the same machine. pre: it is valid
std::string to_json(const Machine& machine);
Result<Machine> machine_from_json(std::string_view text);
Result<Machine> read_machine(const std::filesystem::path& path);
/// Written atomically. Throws ResultError where the path is none to write to (as base/replace_file.hpp says),
/// EnvironmentError where the disk is full or fails; then what was there before is untouched.
void write_machine(const Machine& machine, const std::filesystem::path& path);

}  // namespace terrace
