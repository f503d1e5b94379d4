// SPDX-License-Identifier: Apache-2.0
// A Machine describes the tiers, the links and the engines of one computer, measured here or declared in a
// file.
//
//   engine   something that computes: the processor's cores, a GPU, one core set apart. Engine 0 is the one
//            that runs kernels unless a plan says otherwise; most machines have no other
//
// It is plain data, and nothing is opened. Tier 0 is the fastest, and engine 0 can always use it in place.
// The presets are the machines of the papers (`source` says where every figure comes from); `calibrate`
// (src/profile/calibrate.hpp) measures this computer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"
#include "terrace/shape.hpp"
#include "terrace/tier_spec.hpp"

namespace terrace {

/// A kernel that does more operations than this for every byte it touches works on tiles: it comes back to
/// its operands and writes its results piece by piece, where others stream through them once. Memory that
/// writes small pieces slowly, such as Optane, tells the two apart.
constexpr double kTiledOperations = 8;

struct MachineTier {
  std::string name;  ///< short, such as `dram`; unique in its machine
  Bytes capacity;
  bool addressable = true;     ///< kernels of engine 0 may use bytes in place
  BytesPerSecond read, write;  ///< bandwidth of kernels in place, all threads together; of the device where
                               ///< kernels cannot use the tier
  Seconds latency{0};
  Bytes granularity{64};        ///< offsets and sizes of regions are multiples of it; a power of two
  std::optional<double> price;  ///< price of a gigabyte, in any currency
  std::string spec;  ///< opens the tier on this computer; empty for a machine that is not this computer
  std::optional<BytesPerSecond> tiled_write = {};  ///< of kernels that work on tiles, see kTiledOperations;
                                                   ///< none: as `write`
  bool operator==(const MachineTier&) const = default;
};

/// Bandwidth of a link for transfers of one size.
struct SizedRate {
  Bytes size;
  BytesPerSecond rate;
  bool operator==(const SizedRate&) const = default;
};

/// How fast a link between memories is with a given number of copying threads. It helps to choose that
/// number, which is `threads=` in the spec of the destination tier.
struct ThreadedRate {
  unsigned threads = 1;
  BytesPerSecond rate;         ///< bandwidth of large transfers while nothing else runs
  double compute_loss = 0;     ///< as Link::compute_loss
  double while_computing = 1;  ///< as Link::while_computing
  bool operator==(const ThreadedRate&) const = default;
};

/// A Link is a one-way connection from one tier to another.
struct Link {
  TierId from, to;
  std::vector<SizedRate> rates;  ///< bandwidths while nothing else runs: at least one, sizes ascending. Times
                                 ///< are interpolated between two sizes
  double both_ways = 1;          ///< share of the rate that remains while the opposite link is busy, too
  double compute_loss = 0;       ///< share of the kernels' speed that is lost while the link is busy
  unsigned threads = 1;          ///< copying threads the rates were measured with
  double while_computing = 1;    ///< share of the rate that remains while kernels run
  std::vector<ThreadedRate> by_threads = {};  ///< in ascending order of threads; empty where not measured
  bool operator==(const Link&) const = default;

  /// Returns how long one transfer takes while nothing else runs. Above the largest size the rate is
  /// constant; below the smallest size the line through the first two points is extended, so that the fixed
  /// cost of a transfer remains.
  Seconds time(Bytes size) const;
};

/// Arithmetic rate for one type of elements.
struct TypedRate {
  DataType type = DataType::f32;
  double flops_per_second = 0;
  bool operator==(const TypedRate&) const = default;
};

struct Compute {
  std::string name;  ///< name of the processor
  unsigned threads = 1;
  double flops_per_second = 0;          ///< single precision
  std::vector<TypedRate> by_type = {};  ///< of types whose rate differs from single precision
  bool operator==(const Compute&) const = default;

  /// Arithmetic rate for elements of this type.
  double rate(DataType type) const;
};

/// The position of an engine in its machine.
struct EngineId {
  std::uint32_t index = 0;
  constexpr auto operator<=>(const EngineId&) const = default;
};

struct Engine {
  Compute compute;              ///< its name is unique in the machine
  std::vector<TierId> reaches;  ///< tiers whose bytes its kernels may use in place, in ascending order
  bool operator==(const Engine&) const = default;
};

struct Machine {
  std::string name;    ///< `this`, the name of a preset, or the name given in a file
  std::string source;  ///< where the figures come from, with a date where they were measured
  std::vector<MachineTier> tiers;
  std::vector<Link> links;
  Compute compute;                           ///< of engine 0, which reaches the addressable tiers
  std::vector<Engine> further_engines = {};  ///< engine 1 and so on
  bool operator==(const Machine&) const = default;

  const MachineTier& operator[](TierId id) const { return tiers[id.index]; }
  std::size_t engine_count() const { return 1 + further_engines.size(); }
  /// pre: the machine has that engine
  const Compute& compute_of(EngineId id) const {
    return id.index == 0 ? compute : further_engines[id.index - 1].compute;
  }
  /// Returns whether kernels of the engine may use bytes of the tier in place. pre: the machine has both
  bool reaches(EngineId engine, TierId tier) const;
  /// Returns whether some engine reaches the tier.
  bool is_reached(TierId tier) const;
  /// Returns the link between two tiers, or nullptr where there is none.
  const Link* link(TierId from, TierId to) const;
  /// Returns whether there are links in both directions, so that data evicted to one tier can be fetched
  /// back.
  bool is_linked_both_ways(TierId one, TierId other) const;
};

/// Checks that a description is consistent. The error names the first tier or link that is wrong: no tier, a
/// fastest tier that is not addressable, a link to a missing tier or without rates, a rate or size that is
/// not positive, two tiers of one name or two links between the same tiers, a share out of range, a spec that
/// cannot be parsed, an engine that reaches no tier or shares its name with another, text that is not UTF-8.
Result<void> validate(const Machine& machine);

/// The fingerprint changes whenever a figure or the name of a tier does, but not with the machine's name,
/// source and specs. pre: the machine is valid
std::string fingerprint(const Machine& machine);

struct MachineInfo {
  std::string name, summary;
};
std::vector<MachineInfo> machine_presets();
/// Returns a preset by its name. The error for an unknown name lists the closest ones.
Result<Machine> machine_preset(std::string_view name);

/// Writes the format of docs/formats/machine.md. Reading the text gives the same machine. pre: the machine is
/// valid
std::string to_json(const Machine& machine);
Result<Machine> machine_from_json(std::string_view text);

}  // namespace terrace
