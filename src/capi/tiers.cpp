// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "capi/guard.hpp"
#include "terrace/borrowed.hpp"

using terrace::Bytes;
using terrace::Extent;
using terrace::Tier;
using terrace::TierId;

/// Host memory is the last tier of the mover.
struct terrace_tiers {
  std::vector<std::unique_ptr<Tier>> tiers;
  std::unique_ptr<Tier> host;
  std::unique_ptr<terrace::Mover> mover;  // last: it uses the tiers until it ends

  TierId host_id() const { return {static_cast<std::uint32_t>(tiers.size())}; }
};

struct terrace_transfer {
  terrace::Transfer transfer;
};

namespace terrace::capi {
namespace {

using namespace literals;

std::unique_ptr<terrace_tiers> open_all(const char* const* specs, size_t count) {
  auto made = std::make_unique<terrace_tiers>();
  for (size_t i = 0; i < count; ++i) {
    require(specs[i] != nullptr, "every tier has a spec");
    made->tiers.push_back(expect(open_tier(std::string_view(specs[i]))));
  }
  made->host = borrow_host_memory();
  std::vector<Tier*> moved;
  for (const auto& tier : made->tiers) moved.push_back(tier.get());
  moved.push_back(made->host.get());
  MoverOptions options;
  options.helpers = copy_helpers(moved);
  made->mover = std::make_unique<Mover>(std::move(moved), options);
  return made;
}

TierId tier_of(const terrace_tiers& tiers, std::uint32_t tier) {
  if (tier == TERRACE_HOST) return tiers.host_id();
  if (tier < tiers.tiers.size()) return {tier};
  throw std::invalid_argument(fmt::format("there is no tier {}: {} are open", tier, tiers.tiers.size()));
}

Extent extent_of(const terrace_tiers& tiers, std::uint32_t tier, std::uint64_t offset, std::uint64_t bytes) {
  const TierId id = tier_of(tiers, tier);
  if (tier == TERRACE_HOST) {
    require(offset != 0, "host memory has an address");
    return borrowed_extent(id, reinterpret_cast<const std::byte*>(offset), {bytes});
  }
  const TierDescription& described = tiers.tiers[tier]->description();
  if (offset > described.capacity.count || bytes > described.capacity.count - offset) {
    throw std::invalid_argument(fmt::format("bytes {} to {} are not all in {}, which has {}", offset,
                                            offset + bytes, described.name, described.capacity.count));
  }
  return {id, offset, {bytes}};
}

Move move_of(const terrace_tiers& tiers, const terrace_move& asked) {
  Move move{extent_of(tiers, asked.from_tier, asked.from, asked.bytes),
            extent_of(tiers, asked.to_tier, asked.to, asked.bytes)};
  const bool one_tier = move.from.tier == move.to.tier;
  if (one_tier && asked.from < asked.to + asked.bytes && asked.to < asked.from + asked.bytes)
    throw std::invalid_argument("the two ends of a move overlap");
  if (asked.to_tier == TERRACE_HOST) return move;
  // A disk need not read its last block first where all of it may be overwritten.
  const TierDescription& to = tiers.tiers[asked.to_tier]->description();
  if (asked.to % to.granularity.count == 0)
    move.to.bytes = std::min(round_up(move.to.bytes, to.granularity), Bytes{to.capacity.count - asked.to});
  return move;
}

nlohmann::json describe(const terrace_tiers& tiers) {
  auto list = nlohmann::json::array();
  for (const auto& tier : tiers.tiers) {
    const TierDescription& described = tier->description();
    list.push_back({{"name", described.name},
                    {"capacity", described.capacity.count},
                    {"granularity", described.granularity.count},
                    {"addressable", described.addressable},
                    {"note", described.note}});
  }
  return list;
}

}  // namespace
}  // namespace terrace::capi

using namespace terrace::capi;

int terrace_tiers_open(const char* const* specs, size_t count, terrace_tiers** tiers) {
  return guarded([&] {
    require(tiers != nullptr && (specs != nullptr || count == 0), "tiers want specs and a place");
    *tiers = open_all(specs, count).release();
  });
}

void terrace_tiers_close(terrace_tiers* tiers) {
  guarded([&] { delete tiers; });
}

int terrace_tiers_describe(const terrace_tiers* tiers, char** json) {
  return guarded([&] {
    require(tiers != nullptr && json != nullptr, "tiers and a place are wanted");
    *json = copied(describe(*tiers).dump());
  });
}

void* terrace_tiers_memory(const terrace_tiers* tiers, uint32_t tier) {
  return tiers != nullptr && tier < tiers->tiers.size() ? tiers->tiers[tier]->memory() : nullptr;
}

int terrace_transfer_start(terrace_tiers* tiers, const terrace_move* moves, size_t count,
                           terrace_priority priority, terrace_transfer** transfer) {
  return guarded([&] {
    require(tiers != nullptr && transfer != nullptr && (moves != nullptr || count == 0),
            "a transfer wants tiers, moves and a place");
    require(priority >= TERRACE_BACKGROUND && priority <= TERRACE_URGENT, "there is no such priority");
    std::vector<terrace::Move> made;
    for (size_t i = 0; i < count; ++i) {
      if (moves[i].bytes > 0) made.push_back(move_of(*tiers, moves[i]));
    }
    auto started = std::make_unique<terrace_transfer>();
    if (!made.empty())
      started->transfer = tiers->mover->start(std::move(made), static_cast<terrace::Priority>(priority));
    *transfer = started.release();
  });
}

int terrace_transfer_done(const terrace_transfer* transfer) {
  return transfer == nullptr || !transfer->transfer.valid() || transfer->transfer.done() ? 1 : 0;
}

int terrace_transfer_wait(terrace_transfer* transfer) {
  return guarded([&] {
    require(transfer != nullptr, "a transfer is wanted");
    if (transfer->transfer.valid()) transfer->transfer.wait();
  });
}

void terrace_transfer_free(terrace_transfer* transfer) {
  guarded([&] { delete transfer; });
}

int terrace_tiers_traffic(const terrace_tiers* tiers, uint32_t from, uint32_t to, terrace_traffic* traffic) {
  return guarded([&] {
    require(tiers != nullptr && traffic != nullptr, "tiers and a place are wanted");
    const auto counted = tiers->mover->statistics(tier_of(*tiers, from), tier_of(*tiers, to));
    *traffic = {counted.bytes.count, counted.transfers, counted.busy.count()};
  });
}
