// The table of a spec's options, which the parser, the printer and every message about options use.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "terrace/tier_spec.hpp"

namespace terrace::spec {

constexpr std::array kKinds{TierKind::dram,     TierKind::numa, TierKind::dax,  TierKind::file,
                            TierKind::emulated, TierKind::fake, TierKind::cuda, TierKind::pinned};

constexpr bool has_path(TierKind kind) { return kind == TierKind::dax || kind == TierKind::file; }

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
constexpr std::array kOptions{
    Option{"read", &TierSpec::read_rate, kPacedKinds},
    Option{"write", &TierSpec::write_rate, kPacedKinds},
    Option{"latency", &TierSpec::latency, bits(TierKind::emulated)},
    Option{"huge", &TierSpec::huge_pages, kMemoryKinds},
    Option{"keep", &TierSpec::keep, kPathKinds},
    Option{"pool", &TierSpec::force_pool, bits(TierKind::file)},
    Option{"buffered", &TierSpec::buffered, bits(TierKind::file)},
    Option{"blocks", &TierSpec::blocks, bits(TierKind::fake)},
    Option{"device", &TierSpec::on_device, bits(TierKind::fake)},
    Option{"block", &TierSpec::block, bits(TierKind::file, TierKind::fake)},
    Option{"depth", &TierSpec::depth, bits(TierKind::file), 4096},
    Option{"threads", &TierSpec::threads, kEveryKind, 256},
};

}  // namespace terrace::spec
