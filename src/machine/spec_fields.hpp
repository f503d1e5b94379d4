// The tables of the kinds of tiers and of their options, which the parser, the printer and every message
// about specs use. A new kind is one row here, beside its value of TierKind and its opener in
// tiers/kinds.hpp.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "terrace/tier_spec.hpp"

namespace terrace::spec {

/// What stands between the kind and the size of a spec.
enum class Where { nothing, nodes, path };

struct KindInfo {
  TierKind kind;
  std::string_view name;
  Where where;
  std::string_view example;  ///< quoted in messages
};

/// One row for each kind, in the order of TierKind.
inline constexpr std::array kKinds{
    KindInfo{TierKind::dram, "dram", Where::nothing, "dram:8GiB"},
    KindInfo{TierKind::numa, "numa", Where::nodes, "numa:1:8GiB or numa:0*3+1:8GiB"},
    KindInfo{TierKind::dax, "dax", Where::path, "dax:/mnt/pmem/terrace:64GiB"},
    KindInfo{TierKind::file, "file", Where::path, "file:/data/spill:200GiB"},
    KindInfo{TierKind::emulated, "emulated", Where::nothing,
             "emulated:64GiB,read=39GB/s,write=13GB/s,latency=304ns"},
    KindInfo{TierKind::fake, "fake", Where::nothing, "fake:1MiB"},
};

/// Returns the kind's row, or nullptr for a value that is no kind.
constexpr const KindInfo* find(TierKind kind) {
  for (const KindInfo& info : kKinds) {
    if (info.kind == kind) return &info;
  }
  return nullptr;
}
constexpr Where where_of(TierKind kind) { return find(kind) != nullptr ? find(kind)->where : Where::nothing; }

/// What an option sets. A flag is written `name`, anything else `name=value`.
using Field = std::variant<bool TierSpec::*, unsigned TierSpec::*, Bytes TierSpec::*,
                           BytesPerSecond TierSpec::*, Seconds TierSpec::*>;

struct Option {
  std::string_view name;
  Field field;
  unsigned kinds;     ///< one bit per kind
  unsigned most = 0;  ///< for counts only, which are in 1..most

  constexpr bool valid_for(TierKind kind) const { return kinds >> static_cast<unsigned>(kind) & 1u; }
};

constexpr unsigned bits(auto... kinds) { return (... | (1u << static_cast<unsigned>(kinds))); }
constexpr unsigned kEveryKind = (1u << kKinds.size()) - 1;
constexpr unsigned kMemoryKinds = bits(TierKind::dram, TierKind::numa, TierKind::emulated);
constexpr unsigned kPathKinds = bits(TierKind::dax, TierKind::file);
constexpr unsigned kPacedKinds = bits(TierKind::file, TierKind::emulated);

/// The options in the order in which they are printed.
inline constexpr std::array kOptions{
    Option{"read", &TierSpec::read_rate, kPacedKinds},
    Option{"write", &TierSpec::write_rate, kPacedKinds},
    Option{"latency", &TierSpec::latency, bits(TierKind::emulated)},
    Option{"huge", &TierSpec::huge_pages, kMemoryKinds},
    Option{"keep", &TierSpec::keep, kPathKinds},
    Option{"pool", &TierSpec::force_pool, bits(TierKind::file)},
    Option{"buffered", &TierSpec::buffered, bits(TierKind::file)},
    Option{"blocks", &TierSpec::blocks, bits(TierKind::fake)},
    Option{"block", &TierSpec::block, bits(TierKind::file, TierKind::fake)},
    Option{"depth", &TierSpec::depth, bits(TierKind::file), 4096},
    Option{"threads", &TierSpec::threads, kEveryKind, 256},
};

}  // namespace terrace::spec
