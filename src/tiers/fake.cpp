// SPDX-License-Identifier: Apache-2.0
#include "tiers/fake.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/check.hpp"
#include "terrace/error.hpp"
#include "tiers/fake_blocks.hpp"
#include "tiers/fake_device.hpp"
#include "tiers/kinds.hpp"
#include "tiers/memory_tier.hpp"

namespace terrace {
namespace {

class ScriptedTier : public FakeTier {
 public:
  explicit ScriptedTier(TierDescription description)
      : description_(std::move(description)),
        mapping_(map_anonymous(description_.capacity, description_.name)) {}

  const TierDescription& description() const noexcept override { return description_; }

  void fail(std::uint64_t nth, Fault fault, std::optional<Access> only) override {
    script_.fail(nth, fault, only);
  }
  void fail_randomly(double probability, Fault fault, std::uint64_t seed) override {
    script_.fail_randomly(probability, fault, seed);
  }
  void delay(Seconds time) override { script_.delay(time); }
  void heal() override { script_.heal(); }
  std::uint64_t operations() const override { return script_.operations(); }

 protected:
  std::span<std::byte> bytes() { return mapping_.bytes().first(description_.capacity.count); }

  const TierDescription description_;
  const Mapping mapping_;
  FaultScript script_;
};

class AddressableFake final : public ScriptedTier {
 public:
  using ScriptedTier::ScriptedTier;

  std::byte* memory() noexcept override { return mapping_.data(); }

  void pace(Access access, Bytes amount, Seconds) override {
    const auto fate = script_.next(access);
    if (fate.delay > Seconds{0}) std::this_thread::sleep_for(fate.delay);
    if (!fate.fault) return;
    const int cause = *fate.fault == Fault::no_space ? ENOSPC : EIO;
    throw EnvironmentError(fmt::format("{} {} on {} failed as scripted ({}): heal() ends it",
                                       access == Access::read ? "reading" : "writing", readable(amount),
                                       description_.name, std::strerror(cause)),
                           {description_.name, {}, 0, cause});
  }
};

class BlockFake final : public ScriptedTier {
 public:
  explicit BlockFake(TierDescription description)
      : ScriptedTier(std::move(description)), queue_(bytes(), mutex_, description_.granularity, script_) {}

  BlockQueue* blocks() noexcept override { return &queue_; }
  std::unique_ptr<BlockQueue> lane() override {
    return std::make_unique<FakeQueue>(bytes(), mutex_, description_.granularity, script_);
  }

 private:
  std::mutex mutex_;  // guards the bytes
  FakeQueue queue_;
};

}  // namespace

Result<std::unique_ptr<Tier>> open_fake_tier(const TierSpec& spec) {
  if (spec.on_device) {
    return open_fake_device_tier(spec, std::make_shared<FakeDevice>(FakeDevice::Schedule::random));
  }
  const Bytes block = spec.block.count > 0 ? spec.block : Bytes{512};
  auto description = describe(spec, spec.blocks ? block : Bytes{64});
  if (!description) return description.error();
  description->addressable = !spec.blocks;
  if (const auto enough = require_memory(description->capacity, description->name); !enough)
    return enough.error();
  if (spec.blocks) return std::unique_ptr<Tier>(std::make_unique<BlockFake>(std::move(*description)));
  return std::unique_ptr<Tier>(std::make_unique<AddressableFake>(std::move(*description)));
}

std::unique_ptr<FakeTier> make_fake_tier(const TierSpec& spec) {
  check(spec.kind == TierKind::fake && !spec.on_device, "make_fake_tier() takes a fake spec, on no device");
  auto tier = open_fake_tier(spec).value();
  return std::unique_ptr<FakeTier>(static_cast<FakeTier*>(tier.release()));
}

}  // namespace terrace
