// SPDX-License-Identifier: Apache-2.0
#include "tiers/emulated.hpp"

#include "tiers/kinds.hpp"
#include "tiers/memory_tier.hpp"
#include "tiers/pacer.hpp"

namespace terrace {
namespace {

class EmulatedTier final : public MemoryTier {
 public:
  EmulatedTier(TierDescription description, Mapping mapping, Clock& clock)
      : MemoryTier(std::move(description), std::move(mapping)),
        pacer_(this->description().read_rate, this->description().write_rate, this->description().latency,
               clock) {}

  void pace(Access access, Bytes amount, Seconds took) override {
    access == Access::read ? pacer_.hold(amount, {}, took) : pacer_.hold({}, amount, took);
  }
  void charge(Bytes read, Bytes written, Seconds took, std::uint64_t accesses) override {
    pacer_.hold(read, written, took, accesses);
  }

 private:
  Pacer pacer_;
};

}  // namespace

Result<std::unique_ptr<Tier>> make_emulated_tier(const TierSpec& spec, Clock& clock) {
  auto description = describe(spec, kCacheLine);
  if (!description) return description.error();
  if (spec.threads == 0) description->write_threads = slow_memory_copy_threads();
  auto memory = anonymous_memory(*description);
  if (!memory) return memory.error();
  return std::unique_ptr<Tier>(
      std::make_unique<EmulatedTier>(std::move(*description), std::move(*memory), clock));
}

Result<std::unique_ptr<Tier>> open_emulated_tier(const TierSpec& spec) {
  return make_emulated_tier(spec, steady_clock());
}

}  // namespace terrace
