// SPDX-License-Identifier: Apache-2.0
#include "exec/open_tiers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/check.hpp"
#include "base/memory_limit.hpp"
#include "tiers/cuda.hpp"

namespace terrace {
namespace {
using namespace literals;

constexpr Bytes kBounce = 8_MiB;
constexpr Bytes kStaging = 4_MiB;

using Specs = std::vector<std::optional<TierSpec>>;

/// What the host's memory pays for.
bool is_memory(const TierSpec& spec) {
  return spec.kind != TierKind::file && spec.kind != TierKind::dax && spec.kind != TierKind::cuda;
}
/// What the host has no address of.
bool is_apart(const TierSpec& spec) {
  return spec.kind == TierKind::file || spec.blocks || lies_on_device(spec);
}

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
  if (std::any_of(specs.begin(), specs.end(), [](const auto& spec) { return spec && is_apart(*spec); })) {
    needed += kBounce + kStaging;
    shares += fmt::format(", transfers {}", readable(kBounce + kStaging));
  }
  const MemoryLimit limit = memory_limit();
  if (needed <= limit.available) return {};
  return Error{ErrorCode::too_large,
               fmt::format("{} needs {} of memory ({}) and {} is available ({}), {} too little: take a "
                           "smaller batch or less memory with a slower tier",
                           request.user, readable(needed), shares, readable(limit.available), limit.source,
                           readable(needed - limit.available))};
}

/// The same for each GPU's own memory.
Result<void> require_gpu_memory(const OpenTiers::Request& request, const Specs& specs) {
  std::map<unsigned, Bytes> needed;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i] && specs[i]->kind == TierKind::cuda) needed[specs[i]->gpu] += request.budget[i];
  }
  for (const auto& [gpu, bytes] : needed) {
    const auto free = request.free_on_gpu ? request.free_on_gpu(gpu) : free_on_gpu(gpu);
    if (!free) return Error{free.error().code, fmt::format("{}: {}", request.user, free.error().message)};
    if (bytes <= *free) continue;
    return Error{
        ErrorCode::too_large,
        fmt::format("{} needs {} of cuda:{}, which has {} free, {} too little: take a smaller batch, "
                    "a smaller budget, or end the programs that use it (nvidia-smi names them)",
                    request.user, readable(bytes), gpu, readable(*free), readable(bytes - *free))};
  }
  return {};
}

/// A plan made for other granules or another kind of tier would be carried out wrongly.
Result<void> require_as_described(const MachineTier& machine, Tier& opened, KernelsOn kernels) {
  const TierDescription& tier = opened.description();
  const bool usable = tier.addressable || (kernels == KernelsOn::device && opened.device() != nullptr);
  if (machine.addressable && !usable) {
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
  if (const auto enough = require_gpu_memory(request, *specs); !enough) return enough.error();
  OpenTiers opened;
  opened.tiers_.resize(specs->size());
  for (const bool memory : {false, true}) {
    for (std::size_t i = 0; i < specs->size(); ++i) {
      const auto& spec = (*specs)[i];
      if (!spec || is_memory(*spec) != memory) continue;
      auto tier = request.open ? request.open(*spec) : open_tier(*spec);
      if (!tier) return tier.error();
      opened.tiers_[i] = std::move(*tier);
      const auto fine = require_as_described(request.machine.tiers[i], *opened.tiers_[i], request.kernels);
      if (!fine) return fine.error();
    }
  }
  if (const auto one = opened.find_device(request.user); !one) return one.error();
  opened.start_mover();
  return opened;
}

Result<void> OpenTiers::find_device(const std::string& user) {
  for (const auto& tier : tiers_) {
    if (tier == nullptr || tier->device() == nullptr) continue;
    Device* const here = tier->device()->device;
    if (device_ == nullptr) device_ = here;
    if (here->name() == device_->name()) continue;
    return Error{ErrorCode::unsupported, fmt::format("{} would use {} and {}: a plan runs on one device",
                                                     user, device_->name(), here->name())};
  }
  if (device_ == nullptr) return {};
  for (const auto& tier : tiers_) {
    on_device_.push_back(tier != nullptr &&
                         (tier->device() != nullptr ||
                          (tier->memory() != nullptr &&
                           device_->reaches({tier->memory(), tier->description().capacity.count}))));
  }
  return {};
}

void OpenTiers::start_mover() {
  numbers_.resize(tiers_.size());
  std::vector<Tier*> moved;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (tiers_[i] == nullptr) continue;
    numbers_[i] = static_cast<std::uint32_t>(moved.size());
    moved.push_back(tiers_[i].get());
  }
  const bool apart =
      std::any_of(moved.begin(), moved.end(), [](Tier* tier) { return tier->memory() == nullptr; });
  if (moved.size() < 2 && !apart) return;
  if (apart) {
    TierSpec spec;
    spec.capacity = kStaging;
    staging_ = open_tier(spec).value();
    if (device_ != nullptr) staging_pin_ = device_->pin({staging_->memory(), kStaging.count});
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

bool OpenTiers::is_on_device(TierId id) const {
  check(is_open(id) && device_ != nullptr, "the tier is open, and there is a device");
  return on_device_[id.index];
}

DeviceAddress OpenTiers::device_address(TierAddress address) const {
  check(is_on_device(address.tier), "the device reaches the tier");
  if (const DeviceMemory* const memory = (*this)[address.tier].device())
    return memory->address + address.offset;
  return {reinterpret_cast<std::uint64_t>(at(address))};
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
