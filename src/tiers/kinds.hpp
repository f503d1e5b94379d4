// The openers of all kinds of tiers. A new kind adds one declaration and one row here; open_tier() needs no
// change.
#pragma once

#include <array>
#include <memory>

#include "terrace/tier.hpp"

namespace terrace {

using OpenedTier = Result<std::unique_ptr<Tier>>;

/// Opens anonymous memory.
OpenedTier open_dram_tier(const TierSpec& spec);
/// Opens memory bound to NUMA nodes of the computer.
OpenedTier open_numa_tier(const TierSpec& spec);
/// Opens persistent or CXL memory, mapped from a file or from a /dev/dax device. On a file system without DAX
/// the file is mapped through the page cache, and the description says so.
OpenedTier open_dax_tier(const TierSpec& spec);
/// Opens a disk behind a block queue. It uses direct I/O through io_uring where the computer offers both;
/// otherwise a pool of threads, or the page cache if the spec accepts it. The description's note says which.
/// Fails with the errors of open_backing_file (backing_file.hpp), with invalid_argument for a `block` the
/// disk does not take, and with unsupported where direct I/O is refused and `buffered` was not given; a file
/// that it created is removed then. Throws EnvironmentError where the disk or the system fails.
OpenedTier open_file_tier(const TierSpec& spec);
/// Opens memory that is slowed down to declared rates by the computer's clock; emulated.hpp takes another
/// clock.
OpenedTier open_emulated_tier(const TierSpec& spec);
/// Opens memory that fails on command; fake.hpp has its controls.
OpenedTier open_fake_tier(const TierSpec& spec);

struct TierOpener {
  TierKind kind;
  OpenedTier (*open)(const TierSpec& spec);  ///< pre: spec.kind == kind, and the spec is valid
};

inline constexpr std::array kTierOpeners{
    TierOpener{TierKind::dram, open_dram_tier},         TierOpener{TierKind::numa, open_numa_tier},
    TierOpener{TierKind::dax, open_dax_tier},           TierOpener{TierKind::file, open_file_tier},
    TierOpener{TierKind::emulated, open_emulated_tier}, TierOpener{TierKind::fake, open_fake_tier},
};

}  // namespace terrace
