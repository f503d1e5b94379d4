#include "mover/engines.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace {
namespace {

constexpr std::size_t kBuffers = 8;  // buffers in each half, if the memory suffices

std::vector<Tier*> block_tiers(const std::vector<Tier*>& tiers) {
  std::vector<Tier*> found;
  std::copy_if(tiers.begin(), tiers.end(), std::back_inserter(found),
               [](Tier* tier) { return tier->blocks() != nullptr; });
  return found;
}

// The bounce memory is divided into one scratch block for each tier; half of the rest is for the pool
// of unaligned requests, half for the relay.
struct BounceLayout {
  std::size_t block = 4096;  // a multiple of every tier's block and of every alignment
  std::size_t scratch = 0;
  std::size_t half = 0;
  std::size_t buffer = 0;  // the size of one buffer in either half
};

BounceLayout lay_out(const std::vector<Tier*>& tiers, Bytes bounce) {
  BounceLayout layout;
  std::size_t request = 0;
  for (Tier* tier : tiers) {
    const BlockQueue& queue = *tier->blocks();
    check(tier->description().capacity % queue.block_size() == Bytes{0}, "a block tier holds whole blocks");
    layout.block = std::max<std::size_t>(layout.block, queue.block_size().count);
    request = std::max<std::size_t>(request, queue.request_size().count);
  }
  layout.scratch = layout.block * tiers.size();
  check(bounce.count >= layout.scratch + 4 * layout.block,
        "the bounce memory holds four blocks and one more for each block tier");
  layout.half = (bounce.count - layout.scratch) / 2 / layout.block * layout.block;
  const std::size_t share = std::min(request, layout.half / kBuffers) / layout.block * layout.block;
  layout.buffer = std::max(share, 2 * layout.block);
  return layout;
}

}  // namespace

Engines::Engines(std::vector<Tier*> tiers, const MoverOptions& options)
    : tiers_(std::move(tiers)), links_(tiers_.size()), blocks_(tiers_.size()) {
  check(options.chunk.count > 0, "a chunk has bytes");
  for (Tier* tier : tiers_) {
    check(tier != nullptr && (tier->memory() == nullptr) != (tier->blocks() == nullptr),
          "a tier is addressable or has blocks");
  }
  open_blocks(options.bounce);
  memory_ = std::make_unique<MemoryEngine>(
      tiers_, MemoryEngine::Options{options.helpers, options.chunk, options.before_chunk});
}

void Engines::open_blocks(Bytes bounce) {
  const auto disks = block_tiers(tiers_);
  if (disks.empty()) return;
  const BounceLayout layout = lay_out(disks, bounce);
  const std::string name = "the mover's bounce memory";
  bounce_ = map_anonymous({layout.scratch + 2 * layout.half}, name);
  populate(bounce_, name);
  register_memory();
  const auto buffers = bounce_.bytes().subspan(layout.scratch, layout.half);
  const auto relay_buffers = bounce_.bytes().subspan(layout.scratch + layout.half, layout.half);
  pool_ = std::make_unique<BufferPool>(buffers, layout.buffer);
  relay_ = std::make_unique<DiskRelay>(blocks_, tiers_, relay_buffers, layout.buffer);
  std::byte* scratch = bounce_.data();
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (tiers_[i]->blocks() == nullptr) continue;
    blocks_[i] = std::make_unique<BlockEngine>(*tiers_[i], *pool_, scratch);
    scratch += layout.block;
  }
}

std::vector<std::span<std::byte>> Engines::memory_of_requests() {
  std::vector<std::span<std::byte>> memory{bounce_.bytes()};
  for (Tier* tier : tiers_) {
    if (tier->memory() != nullptr) memory.push_back({tier->memory(), tier->description().capacity.count});
  }
  return memory;
}

// Registration is best effort: a queue that refuses works without it.
void Engines::register_memory() {
  for (Tier* disk : block_tiers(tiers_)) {
    for (const auto memory : memory_of_requests()) disk->blocks()->register_memory(memory);
  }
}

void Engines::forget_memory() noexcept {
  if (bounce_.size() == 0) return;
  for (Tier* disk : block_tiers(tiers_)) {
    for (const auto memory : memory_of_requests()) disk->blocks()->forget_memory(memory);
  }
}

void Engines::raise() noexcept {
  for (const auto& engine : blocks_) {
    if (engine) engine->raise();
  }
}

void Engines::stop() noexcept {
  memory_->stop();
  if (relay_) relay_->drain();
  for (const auto& engine : blocks_) {
    if (engine) engine->stop();
  }
  forget_memory();
  bounce_ = {};
}

}  // namespace terrace
