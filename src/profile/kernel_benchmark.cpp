// SPDX-License-Identifier: Apache-2.0
#include "profile/kernel_benchmark.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/last_cache.hpp"
#include "graph/operand_tensors.hpp"
#include "math/random.hpp"
#include "math/team.hpp"
#include "profile/placements.hpp"
#include "profile/roofline.hpp"

namespace terrace {
namespace {

/// What kernels' vectors like best, and one cache line.
constexpr Bytes kAlignment{64};
/// What one member of the team does at a time, in bytes.
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Every tensor a kernel touches, once, at its position.
class Layout {
 public:
  struct Position {
    TierId tier;
    Bytes offset;
  };

  Layout(const Graph& graph, const Kernel& kernel, std::span<const TierId> tiers) : graph_(graph) {
    check(tiers.size() == operand_count(kernel), "every operand of the benchmark has a tier");
    auto tier = tiers.begin();
    for_each_operand_tensor(kernel, [&](TensorId tensor) { add(tensor, *tier++); });
  }
  /// By tier, up to the last one used; there is always the first.
  const std::vector<Bytes>& bytes() const { return ends_; }
  Bytes bytes(std::size_t tier) const { return tier < ends_.size() ? ends_[tier] : Bytes{}; }
  const std::vector<TensorId>& operands() const { return operands_; }
  /// Those that stand among the operands more than once, as what is worked on in place does.
  const std::vector<TensorId>& repeated() const { return repeated_; }
  Position position(TensorId id) const { return positions_.at(id); }

 private:
  void add(TensorId id, TierId tier) {
    operands_.push_back(id);
    if (tier.index >= ends_.size()) ends_.resize(tier.index + 1);
    Bytes& end = ends_[tier.index];
    const auto [known, is_new] = positions_.try_emplace(id, Position{tier, end});
    if (is_new) {
      end += round_up(graph_[id].bytes, kAlignment);
    } else {
      check(known->second.tier == tier, "a tensor of the benchmark is in one tier");
      repeated_.push_back(id);
    }
  }
  const Graph& graph_;
  std::vector<TensorId> operands_, repeated_;
  std::map<TensorId, Position> positions_;
  std::vector<Bytes> ends_ = std::vector<Bytes>(1);
};

/// What a run charges a tier of declared rates for (exec/script.cpp).
struct Charge {
  const TierDescription* tier = nullptr;
  Bytes read, written;
};

std::vector<Charge> charges(const Graph& graph, const Kernel& kernel, std::span<const TierId> tiers,
                            std::span<const std::unique_ptr<Tier>> memory) {
  std::vector<Charge> all(memory.size());
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    const OperandUse use = operand_use(graph, kernel, i);
    Charge& charge = all[tiers[i].index];
    charge.tier = &memory[tiers[i].index]->description();
    charge.read += use.read;
    charge.written += use.written;
  }
  std::erase_if(all, [](const Charge& charge) {
    return charge.tier == nullptr || charge.tier->read_rate == BytesPerSecond{} ||
           charge.read + charge.written == Bytes{};
  });
  return all;
}

/// Returns what Tier::charge() makes of it in the long run: one direction after the other, then the latency.
Seconds charged(Seconds took, const std::vector<Charge>& charges) {
  for (const Charge& charge : charges) {
    const TierDescription& tier = *charge.tier;
    took = std::max(took, charge.read / tier.read_rate + charge.written / tier.write_rate) + tier.latency;
  }
  return took;
}

/// Splits a stretch of memory among the team.
template <class Body>
void by_team(std::byte* at, std::size_t bytes, Body body) {
  const auto pieces = static_cast<std::int64_t>((bytes + kPiece - 1) / kPiece);
  if (pieces == 0) return;
  math::for_pieces(pieces, [=](std::int64_t piece) {
    const std::size_t begin = static_cast<std::size_t>(piece) * kPiece;
    body(at + begin, std::min(kPiece, bytes - begin));
  });
}

/// One block of numbers is repeated: drawing them all would take longer than the kernels.
std::vector<float> draw_numbers() {
  std::vector<float> numbers(kPiece / sizeof(float));
  math::fill_uniform(numbers.data(), static_cast<std::int64_t>(numbers.size()), 0.5F, 1.5F, {});
  return numbers;
}

/// Integers are below `bound`.
void fill(const Tensor& tensor, std::int64_t bound, const std::vector<float>& numbers, std::byte* at) {
  switch (tensor.type) {
    case DataType::f32:
      return by_team(at, tensor.bytes.count,
                     [source = numbers.data()](std::byte* to, std::size_t n) { std::memcpy(to, source, n); });
    case DataType::i32:
      return math::fill_integers(reinterpret_cast<std::int32_t*>(at),
                                 static_cast<std::int64_t>(tensor.bytes.count / sizeof(std::int32_t)),
                                 static_cast<std::int32_t>(bound), {});
    case DataType::bf16:
      return static_cast<void>(std::memset(at, 0x3C, tensor.bytes.count));  // about a hundredth
    case DataType::f16:
      return static_cast<void>(std::memset(at, 0x3C, tensor.bytes.count));  // about one
    case DataType::f64:
      return static_cast<void>(std::memset(at, 0x3F, tensor.bytes.count));  // about half a thousandth
    case DataType::i64:
    case DataType::u8:
      return static_cast<void>(std::memset(at, 0, tensor.bytes.count));
  }
}

/// Changes a word of each line, so that no other core keeps a copy either.
void stream_over(std::byte* at, std::size_t bytes) {
  by_team(at, bytes, [](std::byte* from, std::size_t n) {
    for (std::size_t i = 0; i < n; i += kAlignment.count) {
      volatile std::byte& line = from[i];
      line = line ^ std::byte{1};
    }
  });
}

OperandTiers all_in_first(const Kernel& kernel) { return OperandTiers(operand_count(kernel)); }

}  // namespace

Bytes benchmark_bytes(const Graph& graph, const Kernel& kernel) {
  return benchmark_bytes(graph, kernel, all_in_first(kernel)).front();
}

std::vector<Bytes> benchmark_bytes(const Graph& graph, const Kernel& kernel, std::span<const TierId> tiers) {
  return Layout(graph, kernel, tiers).bytes();
}

Bytes flush_bytes() { return 2 * last_cache(); }

KernelBenchmark::KernelBenchmark(const Backend& backend, std::unique_ptr<Tier> memory)
    : backend_(&backend), numbers_(draw_numbers()) {
  check(memory->memory() != nullptr, "kernels under benchmark use their memory in place");
  memory_.push_back(std::move(memory));
}

Result<KernelBenchmark> KernelBenchmark::open(const Backend& backend, Bytes arena) {
  TierSpec spec;
  spec.capacity = std::max(arena, kAlignment);
  spec.huge_pages = true;
  auto memory = open_tier(spec);
  if (!memory) return memory.error();
  return KernelBenchmark(backend, std::move(*memory));
}

void KernelBenchmark::add(TierId id, std::unique_ptr<Tier> memory) {
  check(memory->memory() != nullptr && !has(id), "a further tier is addressable and new");
  if (id.index >= memory_.size()) memory_.resize(id.index + 1);
  memory_[id.index] = std::move(memory);
}

void KernelBenchmark::empty_caches(std::span<const Bytes> used) {
  Bytes left = flush_bytes();
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    if (memory_[i] == nullptr) continue;
    const Bytes begin = i < used.size() ? used[i] : Bytes{};
    const Bytes part = std::min(left, memory_[i]->description().capacity - begin);
    stream_over(memory_[i]->memory() + begin.count, part.count);
    left -= part;
  }
}

PlacedTime KernelBenchmark::measure(const Graph& graph, const Kernel& kernel) {
  return measure(graph, kernel, all_in_first(kernel));
}

PlacedTime KernelBenchmark::measure(const Graph& graph, const Kernel& kernel, std::span<const TierId> tiers,
                                    const Effort& effort) {
  const Layout layout(graph, kernel, tiers);
  for (std::uint32_t i = 0; i < layout.bytes().size(); ++i) {
    check(layout.bytes(i) == Bytes{} || (has({i}) && layout.bytes(i) <= memory_[i]->description().capacity),
          "a kernel under benchmark fits in the arena");
  }
  const auto at = [&](TensorId id) {
    const Layout::Position position = layout.position(id);
    return memory_[position.tier.index]->memory() + position.offset.count;
  };
  const std::int64_t bound = backend_->integers_below(kernel);
  const auto fill_all = [&](const std::vector<TensorId>& ids) {
    for (const TensorId id : ids) fill(graph[id], bound, numbers_, at(id));
  };
  fill_all(layout.operands());
  std::vector<std::byte*> operands;
  for (const TensorId id : layout.operands()) operands.push_back(at(id));
  const auto runnable = backend_->instantiate(graph, kernel);
  const auto charged_for = charges(graph, kernel, tiers, memory_);
  const Clock& clock = steady_clock();
  const auto timed = [&] {
    const Clock::Time begin = clock.now();
    runnable->run(operands, {});
    return charged(clock.now() - begin, charged_for);
  };
  timed();  // the first run of a kernel also prepares it
  TimeSamples cold, warm;
  const Clock::Time begin = clock.now();
  while (!cold.are_enough(clock.now() - begin, effort)) {
    // A kernel fed with its own results would soon meet numbers no training has.
    fill_all(layout.repeated());
    empty_caches(layout.bytes());
    cold.add(timed());
    fill_all(layout.repeated());
    warm.add(timed());
  }
  PlacedTime placed;
  placed.tiers.assign(tiers.begin(), tiers.end());
  placed.cold = cold.median();
  placed.warm = std::min(placed.cold, warm.median());
  placed.spread = cold.half_width();
  placed.samples = static_cast<std::uint32_t>(cold.count());
  return placed;
}

std::span<const std::byte> KernelBenchmark::contents(const Graph& graph, const Kernel& kernel,
                                                     TensorId id) const {
  const Layout layout(graph, kernel, all_in_first(kernel));
  return {memory_[0]->memory() + layout.position(id).offset.count, graph[id].bytes.count};
}

}  // namespace terrace
