// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ann/slow_links.hpp"
#include "ann/slow_part.hpp"
#include "base/check.hpp"
#include "tiers/mapping.hpp"

namespace terrace::ann {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFF;
/// Half of the frames serve one round; fewer would make rounds of too few reads.
constexpr std::uint64_t kLeastFrames = 32;

/// One unit of the disk in memory.
struct Frame {
  std::uint32_t unit = kNone;
  std::uint32_t round = 0;  ///< the last that used it: it stays until that round is over
  bool used = false;        ///< since the hand passed (CLOCK)
  bool coming = false;      ///< its read is under way, so it stays
  std::int64_t result = 0;  ///< of that read, as in BlockCompletion
  Piece piece = {};         ///< its memory, as requests name it
};

Bytes unit_table(const SlowLayout& layout) { return Bytes{sizeof(std::uint32_t)} * layout.units(); }
Bytes frame_bytes(const SlowLayout& layout) { return layout.unit() + Bytes{sizeof(Frame)}; }

std::uint64_t frames_in(const SlowLayout& layout, Bytes cache) {
  return std::min((cache - unit_table(layout)) / frame_bytes(layout), std::max(layout.units(), kLeastFrames));
}

class DiskPart final : public SlowPart {
 public:
  DiskPart(const SlowLayout& layout, BlockQueue& queue, DistanceFunction distance, Bytes cache,
           std::string name, std::string path)
      : layout_(layout),
        queue_(queue),
        distance_(distance),
        name_(std::move(name)),
        path_(std::move(path)),
        frame_of_(layout.units(), kNone),
        frames_(frames_in(layout, cache)),
        memory_(map_anonymous(layout.unit() * frames_.size(), name_)) {
    for (std::size_t i = 0; i < frames_.size(); ++i)
      frames_[i].piece = {memory_.data() + i * layout_.unit().count, layout_.unit().count};
    queue_.register_memory(memory_.bytes());
  }
  ~DiskPart() override {
    while (coming_ > 0) take_completions(coming_);
    queue_.forget_memory(memory_.bytes());
  }

  /// A search that has far more frames than it asks ahead for is never left without one.
  void prefetch(std::span<const std::uint32_t> nodes) override {
    start_round();
    for (const std::uint32_t node : nodes) {
      if (coming_ >= std::min<std::size_t>(queue_.depth(), frames_.size() / 4)) break;
      if (frame_of_[unit_of(node)] == kNone) ask_for(unit_of(node));
    }
    start_reading();
  }

  void links(std::span<const std::uint32_t> nodes, std::vector<std::uint32_t>& out) override {
    in_rounds(nodes, [&](std::size_t, std::uint32_t node) { append_links(at(node), layout_, node, out); });
  }

  void distances(const float* query, std::span<const std::uint32_t> nodes, float* out) override {
    in_rounds(nodes, [&](std::size_t i, std::uint32_t node) {
      out[i] = distance_(query, vector_of(node), layout_.dimension());
    });
  }

  void ids(std::span<const std::uint32_t> nodes, std::uint32_t* out) override {
    in_rounds(nodes, [&](std::size_t i, std::uint32_t node) {
      std::memcpy(out + i, at(node) + layout_.id_at().count, sizeof *out);
    });
  }

  const SlowCounts& counts() const override { return counts_; }

 private:
  std::uint32_t unit_of(std::uint32_t node) const {
    return static_cast<std::uint32_t>(layout_.place(node) / layout_.unit().count);
  }
  /// pre: fetched in this round
  const std::byte* at(std::uint32_t node) const {
    return frames_[frame_of_[unit_of(node)]].piece.memory + layout_.place(node) % layout_.unit().count;
  }

  /// Valid until the next call. pre: fetched in this round
  const float* vector_of(std::uint32_t node) {
    const std::byte* elements = at(node) + layout_.vector_at().count;
    // Records are whole words, so floats in them are aligned.
    if (layout_.type() == ElementType::f32) return reinterpret_cast<const float*>(elements);
    floats_.resize(layout_.dimension());
    read_elements(layout_.type(), elements, floats_);
    return floats_.data();
  }

  /// Calls `use` with each node, and its position, while its unit is in memory.
  template <class Use>
  void in_rounds(std::span<const std::uint32_t> nodes, Use use) {
    const std::size_t most = frames_.size() / 2;
    for (std::size_t first = 0; first < nodes.size(); first += most) {
      const auto some = nodes.subspan(first, std::min(most, nodes.size() - first));
      fetch(some);
      for (std::size_t i = 0; i < some.size(); ++i) use(first + i, some[i]);
    }
  }

  /// Returns when the units of all these nodes are in memory. A round is over when all its reads are.
  void fetch(std::span<const std::uint32_t> nodes) {
    start_round();
    for (const std::uint32_t node : nodes) {
      const std::uint32_t unit = unit_of(node);
      if (frame_of_[unit] != kNone) {
        ++counts_.hits;
        keep(frames_[frame_of_[unit]]);
        continue;
      }
      while (coming_ == queue_.depth()) {
        start_reading();
        take_completions(1);
      }
      keep(frames_[ask_for(unit)]);
    }
    start_reading();
    wait_for(nodes);
    for (const std::uint32_t node : nodes) {
      Frame& frame = frames_[frame_of_[unit_of(node)]];
      if (frame.result != static_cast<std::int64_t>(layout_.unit().count)) give_up(frame);
    }
  }
  void wait_for(std::span<const std::uint32_t> nodes) {
    const auto missing = [&] {
      missing_.clear();
      for (const std::uint32_t node : nodes) {
        const std::uint32_t number = frame_of_[unit_of(node)];
        if (frames_[number].coming) missing_.push_back(number);
      }
      std::sort(missing_.begin(), missing_.end());
      missing_.erase(std::unique(missing_.begin(), missing_.end()), missing_.end());
      return missing_.size();
    };
    std::size_t most = missing();
    if (most > 0) ++counts_.rounds;
    // Those that were asked for ahead may come first.
    for (; most > 0; most = missing()) take_completions(most);
  }
  void keep(Frame& frame) {
    frame.round = round_;
    frame.used = true;
  }

  void start_round() {
    if (++round_ != 0) return;
    for (Frame& frame : frames_) frame.round = 0;
    round_ = 1;
  }

  /// A frame that this round does not use: the first that nothing used since the hand passed it last.
  std::uint32_t free_frame() {
    for (;;) {
      hand_ = hand_ + 1 < frames_.size() ? hand_ + 1 : 0;
      Frame& frame = frames_[hand_];
      if (frame.coming || frame.round == round_ || std::exchange(frame.used, false)) continue;
      forget(frame);
      return hand_;
    }
  }
  void forget(Frame& frame) {
    if (frame.unit != kNone) frame_of_[frame.unit] = kNone;
    frame.unit = kNone;
  }

  std::uint32_t ask_for(std::uint32_t unit) {
    const std::uint32_t number = free_frame();
    Frame& frame = frames_[number];
    frame.unit = unit;
    frame.coming = true;
    frame_of_[unit] = number;
    ++coming_;
    ++counts_.reads;
    counts_.bytes += layout_.unit().count;
    asked_.push_back({Access::read, unit * layout_.unit().count, std::span(&frame.piece, 1), number});
    return number;
  }
  /// Submits all reads that were asked for, together.
  void start_reading() {
    if (!asked_.empty()) queue_.submit_all(asked_);
    asked_.clear();
  }

  /// Waits for `least` reads, or some of them. Whoever asks for a unit that did not come is told so.
  void take_completions(std::size_t least) {
    std::array<BlockCompletion, 16> done;
    const std::size_t count = queue_.wait_for(done, std::min(least, done.size()));
    coming_ -= count;
    for (std::size_t i = 0; i < count; ++i) {
      frames_[done[i].tag].coming = false;
      frames_[done[i].tag].result = done[i].result;
    }
  }

  /// The unit is asked for again next time.
  [[noreturn]] void give_up(Frame& frame) {
    const std::uint64_t offset = frame.unit * layout_.unit().count;
    forget(frame);
    const int cause = frame.result < 0 ? static_cast<int>(-frame.result) : 0;
    const std::string reason = cause != 0
                                   ? std::strerror(cause)
                                   : fmt::format("{} of {} bytes came", frame.result, layout_.unit().count);
    throw EnvironmentError(
        fmt::format(
            "reading the index from {} failed at byte {} ({}): the query has no answer; check the disk",
            name_, offset, reason),
        {name_, path_, offset, cause});
  }

  const SlowLayout layout_;
  BlockQueue& queue_;
  const DistanceFunction distance_;
  const std::string name_, path_;
  std::vector<std::uint32_t> frame_of_;  // by unit
  std::vector<Frame> frames_;
  const Mapping memory_;
  std::uint32_t round_ = 0, hand_ = 0;
  std::size_t coming_ = 0;  // reads under way or asked for
  std::vector<BlockRequest> asked_;
  std::vector<std::uint32_t> missing_;  // frames
  std::vector<float> floats_;           // of the last vector that was bytes
  SlowCounts counts_;
};

}  // namespace

Bytes least_cache(const SlowLayout& layout) {
  return unit_table(layout) + frame_bytes(layout) * kLeastFrames;
}

std::unique_ptr<SlowPart> slow_on_disk(const SlowLayout& layout, BlockQueue& queue, DistanceFunction distance,
                                       Bytes cache, std::string name, std::string path) {
  check(cache >= least_cache(layout), "the cache of a disk holds at least a round");
  return std::make_unique<DiskPart>(layout, queue, distance, cache, std::move(name), std::move(path));
}

}  // namespace terrace::ann
