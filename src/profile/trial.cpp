#include "profile/trial.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "kernels/cpu/instantiate.hpp"
#include "kernels/cpu/math/random.hpp"
#include "kernels/cpu/math/team.hpp"
#include "profile/samples.hpp"

namespace terrace {
namespace {

using namespace literals;

/// What kernels' vectors like best, and one cache line.
constexpr Bytes kAlignment{64};
/// What one member of the team does at a time, in bytes.
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Every tensor a kernel touches, once, at its offset.
class Layout {
 public:
  Layout(const Graph& graph, const Kernel& kernel) : graph_(graph) {
    for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
      for (const Operand& operand : *operands) add(operand.tensor);
    }
    if (kernel.workspace) add(kernel.workspace);
  }
  Bytes bytes() const { return end_; }
  const std::vector<TensorId>& operands() const { return operands_; }
  /// Those that stand among the operands more than once, as what is worked on in place does.
  const std::vector<TensorId>& repeated() const { return repeated_; }
  std::uint64_t offset(TensorId id) const { return offsets_.at(id).count; }

 private:
  void add(TensorId id) {
    operands_.push_back(id);
    if (offsets_.try_emplace(id, end_).second) {
      end_ += round_up(graph_[id].bytes, kAlignment);
    } else {
      repeated_.push_back(id);
    }
  }
  const Graph& graph_;
  std::vector<TensorId> operands_, repeated_;
  std::map<TensorId, Bytes> offsets_;
  Bytes end_;
};

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

/// How many different integers a kernel understands.
std::int32_t integer_bound(const Kernel& kernel) {
  switch (kernel.operation) {
    case Operation::embedding:
      return static_cast<std::int32_t>(kernel.inputs[0].shape[0]);
    case Operation::embedding_backward:
      return static_cast<std::int32_t>(kernel.outputs[0].shape[0]);
    case Operation::cross_entropy:
    case Operation::cross_entropy_backward:
      return static_cast<std::int32_t>(kernel.inputs[0].shape.back());
    default:
      return 1;
  }
}

void fill(const Tensor& tensor, const Kernel& kernel, const std::vector<float>& numbers, std::byte* at) {
  switch (tensor.type) {
    case DataType::f32:
      return by_team(at, tensor.bytes.count,
                     [source = numbers.data()](std::byte* to, std::size_t n) { std::memcpy(to, source, n); });
    case DataType::i32:
      return math::fill_integers(reinterpret_cast<std::int32_t*>(at),
                                 static_cast<std::int64_t>(tensor.bytes.count / sizeof(std::int32_t)),
                                 integer_bound(kernel), {});
    case DataType::bf16:
      return static_cast<void>(std::memset(at, 0x3C, tensor.bytes.count));  // about a hundredth
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

}  // namespace

Bytes trial_bytes(const Graph& graph, const Kernel& kernel) { return Layout(graph, kernel).bytes(); }

Bytes flush_bytes() {
  long last = 0;
  for (const int level : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE}) {
    last = std::max(last, sysconf(level));
  }
  // Where the system does not say, more than most have.
  return last > 0 ? 2 * Bytes{static_cast<std::uint64_t>(last)} : 64_MiB;
}

Trial::Trial(std::unique_ptr<Tier> memory) : memory_(std::move(memory)), numbers_(draw_numbers()) {}

Result<Trial> Trial::open(Bytes arena) {
  TierSpec spec;
  spec.capacity = std::max(arena, kAlignment);
  spec.huge_pages = true;
  auto memory = open_tier(spec);
  if (!memory) return memory.error();
  return Trial(std::move(*memory));
}

PlacedTime Trial::measure(const Graph& graph, const Kernel& kernel) {
  const Layout layout(graph, kernel);
  const Bytes capacity = memory_->description().capacity;
  check(layout.bytes() <= capacity, "a kernel on trial fits in the arena");
  std::byte* arena = memory_->memory();
  const auto fill_all = [&](const std::vector<TensorId>& ids) {
    for (const TensorId id : ids) fill(graph[id], kernel, numbers_, arena + layout.offset(id));
  };
  fill_all(layout.operands());
  std::vector<std::byte*> operands;
  for (const TensorId id : layout.operands()) operands.push_back(arena + layout.offset(id));
  const auto runnable = cpu::instantiate(graph, kernel);
  const Clock& clock = steady_clock();
  const auto timed = [&] {
    const Clock::Time begin = clock.now();
    runnable->run(operands, {});
    return Seconds(clock.now() - begin);
  };
  timed();  // the first run of a kernel also prepares it
  Samples cold, warm;
  const Clock::Time begin = clock.now();
  while (!cold.are_enough(clock.now() - begin)) {
    // A kernel fed with its own results would soon meet numbers no training has.
    fill_all(layout.repeated());
    stream_over(arena + layout.bytes().count, std::min(flush_bytes(), capacity - layout.bytes()).count);
    cold.add(timed());
    fill_all(layout.repeated());
    warm.add(timed());
  }
  PlacedTime placed;
  placed.tiers.assign(layout.operands().size(), TierId{0});
  placed.cold = cold.median();
  placed.warm = std::min(placed.cold, warm.median());
  placed.spread = cold.half_width();
  placed.samples = static_cast<std::uint32_t>(cold.count());
  return placed;
}

std::span<const std::byte> Trial::contents(const Graph& graph, const Kernel& kernel, TensorId id) const {
  return {memory_->memory() + Layout(graph, kernel).offset(id), graph[id].bytes.count};
}

}  // namespace terrace
