// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "ann/prefetch.hpp"
#include "ann/slow_links.hpp"
#include "ann/slow_part.hpp"

namespace terrace::ann {
namespace {

class MemoryPart final : public SlowPart {
 public:
  MemoryPart(const SlowLayout& layout, const std::byte* memory, DistanceFunction distance, Tier* charged)
      : layout_(layout), memory_(memory), distance_(distance), charged_(charged) {}

  /// Memory that is emulated cannot bring anything by itself: what was asked for ahead owes no latency.
  void prefetch(std::span<const std::uint32_t> nodes) override {
    ahead_.assign(nodes.begin(), nodes.end());
    for (const std::uint32_t node : nodes) ann::prefetch(at(node), layout_.list_bytes().count);
  }

  void expect(std::uint32_t node) override { ann::prefetch(at(node), layout_.list_bytes().count); }

  void links(std::span<const std::uint32_t> nodes, std::vector<std::uint32_t>& out) override {
    const bool brought = std::all_of(nodes.begin(), nodes.end(), [&](std::uint32_t node) {
      return std::find(ahead_.begin(), ahead_.end(), node) != ahead_.end();
    });
    use(nodes.size() * layout_.list_bytes(), brought ? 0 : 1, [&] {
      for (const std::uint32_t node : nodes) append_links(at(node), layout_, node, out);
    });
  }

  void distances(const float* query, std::span<const std::uint32_t> nodes, float* out) override {
    const std::size_t bytes = layout_.dimension() * sizeof(float);
    // As many as are asked for at once come at once; the next so many wait for them.
    use(Bytes{bytes} * nodes.size(), (nodes.size() + kLookAhead - 1) / kLookAhead, [&] {
      for (std::size_t i = 0; i < std::min(kLookAhead, nodes.size()); ++i)
        ann::prefetch(vector_of(nodes[i]), bytes);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (i + kLookAhead < nodes.size()) ann::prefetch(vector_of(nodes[i + kLookAhead]), bytes);
        out[i] = distance_(query, vector_of(nodes[i]), layout_.dimension());
      }
    });
  }

  void ids(std::span<const std::uint32_t> nodes, std::uint32_t* out) override {
    use(kIdBytes * nodes.size(), 1, [&] {
      for (std::size_t i = 0; i < nodes.size(); ++i)
        std::memcpy(out + i, at(nodes[i]) + layout_.id_at().count, sizeof *out);
    });
  }

  const SlowCounts& counts() const override { return counts_; }
  const std::byte* in_place() const override { return charged_ == nullptr ? memory_ : nullptr; }

 private:
  const std::byte* at(std::uint32_t node) const { return memory_ + layout_.place(node); }
  // Records are whole words, so floats in them are aligned.
  const float* vector_of(std::uint32_t node) const {
    return reinterpret_cast<const float*>(at(node) + layout_.vector_at().count);
  }

  /// `accesses` wait for one another, and the next use waits for them.
  template <class Action>
  void use(Bytes bytes, std::uint64_t accesses, Action action) {
    if (bytes.count == 0) return;
    counts_.bytes += bytes.count;
    if (charged_ == nullptr) return action();
    const auto began = std::chrono::steady_clock::now();
    action();
    charged_->charge(bytes, {}, std::chrono::steady_clock::now() - began, accesses);
  }

  const SlowLayout layout_;
  const std::byte* memory_;
  const DistanceFunction distance_;
  Tier* charged_;
  std::vector<std::uint32_t> ahead_;  // nodes that were asked for ahead
  SlowCounts counts_;
};

}  // namespace

std::unique_ptr<SlowPart> slow_in_memory(const SlowLayout& layout, const std::byte* memory,
                                         DistanceFunction distance, Tier* charged) {
  return std::make_unique<MemoryPart>(layout, memory, distance, charged);
}

}  // namespace terrace::ann
