#include "exec/open_tiers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.hpp"
#include "base/memory_limit.hpp"

namespace terrace {
namespace {
using namespace literals;

constexpr Bytes kBounce = 8_MiB;
constexpr Bytes kStaging = 4_MiB;

using Specs = std::vector<std::optional<TierSpec>>;

bool is_memory(const TierSpec& spec) { return spec.kind != TierKind::file && spec.kind != TierKind::dax; }
bool is_disk(const TierSpec& spec) { return spec.kind == TierKind::file || spec.blocks; }

Result<TierSpec> spec_of(const MachineTier& tier, const std::string& machine, Bytes budget) {
  if (tier.spec.empty()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("tier {} of machine {} has no spec: it is a machine file of another computer; "
                             "calibrate this one",
                             tier.name, machine)};
  }
  auto spec = parse_tier_spec(tier.spec);
  if (!spec) return spec;
  spec->capacity = round_up(budget, tier.granularity);
  if (spec->kind == TierKind::dram) spec->huge_pages = true;
  return spec;
}

Result<Specs> specs_of(const OpenTiers::Request& request) {
  Specs specs;
  for (std::size_t i = 0; i < request.budget.size(); ++i) {
    specs.emplace_back();
    if (request.budget[i] == Bytes{0}) continue;
    auto spec = spec_of(request.machine.tiers[i], request.machine.name, request.budget[i]);
    if (!spec) return spec.error();
    specs.back() = std::move(*spec);
  }
  return specs;
}

/// Whether memory has room for all tiers together: opened one by one, each would find room that the next one
/// needs.
Result<void> require_memory(const OpenTiers::Request& request, const Specs& specs) {
  Bytes needed{0};
  std::string shares;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i] || !is_memory(*specs[i])) continue;
    needed += request.budget[i];
    shares += fmt::format("{}{} {}", shares.empty() ? "" : ", ", request.machine.tiers[i].name,
                          readable(request.budget[i]));
  }
  if (std::any_of(specs.begin(), specs.end(), [](const auto& spec) { return spec && is_disk(*spec); })) {
    needed += kBounce + kStaging;
    shares += fmt::format(", transfers {}", readable(kBounce + kStaging));
  }
  const MemoryLimit limit = memory_limit();
  if (needed <= limit.available) return {};
  return Error{ErrorCode::too_large,
               fmt::format("{} needs {} of memory ({}) and {} is available ({}): take a smaller batch or "
                           "less memory with a slower tier",
                           request.user, readable(needed), shares, readable(limit.available), limit.source)};
}

/// A plan made for other granules or another kind of tier would be carried out wrongly.
Result<void> require_as_described(const MachineTier& machine, const TierDescription& tier) {
  if (machine.addressable && !tier.addressable) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the machine says that kernels use {} in place, which {} does not allow: "
                             "calibrate this computer again",
                             machine.name, tier.name)};
  }
  if (machine.granularity % tier.granularity != Bytes{0}) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("the machine says that regions of {} are multiples of {}, where {} wants {}: "
                    "calibrate this computer again",
                    machine.name, to_string(machine.granularity), tier.name, to_string(tier.granularity))};
  }
  return {};
}

}  // namespace

Result<OpenTiers> OpenTiers::open(const Request& request) {
  check(request.budget.size() == request.machine.tiers.size(), "there is a budget for each tier");
  const auto specs = specs_of(request);
  if (!specs) return specs.error();
  if (const auto enough = require_memory(request, *specs); !enough) return enough.error();
  OpenTiers opened;
  opened.tiers_.resize(specs->size());
  for (const bool memory : {false, true}) {
    for (std::size_t i = 0; i < specs->size(); ++i) {
      const auto& spec = (*specs)[i];
      if (!spec || is_memory(*spec) != memory) continue;
      auto tier = request.open ? request.open(*spec) : open_tier(*spec);
      if (!tier) return tier.error();
      opened.tiers_[i] = std::move(*tier);
      const auto fine = require_as_described(request.machine.tiers[i], opened.tiers_[i]->description());
      if (!fine) return fine.error();
    }
  }
  opened.start_mover();
  return opened;
}

void OpenTiers::start_mover() {
  numbers_.resize(tiers_.size());
  std::vector<Tier*> moved;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (tiers_[i] == nullptr) continue;
    numbers_[i] = static_cast<std::uint32_t>(moved.size());
    moved.push_back(tiers_[i].get());
  }
  if (moved.size() < 2) return;
  if (std::any_of(moved.begin(), moved.end(), [](Tier* tier) { return tier->blocks() != nullptr; })) {
    TierSpec spec;
    spec.capacity = kStaging;
    staging_ = open_tier(spec).value();
    staging_use_ = std::make_unique<std::mutex>();
    staging_number_ = static_cast<std::uint32_t>(moved.size());
    moved.push_back(staging_.get());
  }
  MoverOptions options;
  options.bounce = kBounce;
  options.helpers = copy_helpers(moved);
  mover_ = std::make_unique<Mover>(std::move(moved), options);
}

Tier& OpenTiers::operator[](TierId id) const {
  check(is_open(id), "the tier is open");
  return *tiers_[id.index];
}

std::byte* OpenTiers::at(TierAddress address) const {
  std::byte* memory = (*this)[address.tier].memory();
  return memory == nullptr ? nullptr : memory + address.offset;
}

Extent OpenTiers::extent(TierAddress address, Bytes bytes) const {
  return {{numbers_[address.tier.index]}, address.offset, bytes};
}

void OpenTiers::read(TierAddress from, std::span<std::byte> to) const {
  if (const std::byte* memory = at(from)) {
    std::memcpy(to.data(), memory, to.size());
    return;
  }
  const std::lock_guard lock(*staging_use_);
  const Bytes block = (*this)[from.tier].description().granularity;
  while (!to.empty()) {
    const Bytes part = std::min(kStaging, Bytes{to.size()});
    mover_->move({{extent(from, part), {{staging_number_}, 0, round_up(part, block)}}});
    std::memcpy(to.data(), staging_->memory(), part.count);
    to = to.subspan(part.count);
    from.offset += part.count;
  }
}

void OpenTiers::write(std::span<const std::byte> from, TierAddress to) const {
  if (std::byte* memory = at(to)) {
    std::memcpy(memory, from.data(), from.size());
    return;
  }
  const std::lock_guard lock(*staging_use_);
  const Bytes block = (*this)[to.tier].description().granularity;
  while (!from.empty()) {
    const Bytes part = std::min(kStaging, Bytes{from.size()});
    std::memcpy(staging_->memory(), from.data(), part.count);
    mover_->move({{{{staging_number_}, 0, part}, extent(to, round_up(part, block))}});
    from = from.subspan(part.count);
    to.offset += part.count;
  }
}

}  // namespace terrace
