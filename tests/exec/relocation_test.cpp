#include "exec/relocation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "backends/processor.hpp"
#include "exec/planned.hpp"
#include "split/nets.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {
using namespace literals;

/// A plan that does nothing but keep every persistent tensor somewhere, packed without holes in any order: in
/// the fast tier, the slow one, or both.
Plan placed(const Graph& graph, const Machine& machine, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<std::uint32_t> order(graph.tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  Plan plan;
  std::uint64_t ends[2] = {};
  for (const std::uint32_t i : order) {
    if (!graph.tensors[i].persistent) continue;
    const std::uint64_t where = 1 + random.below(3);
    for (std::uint32_t tier = 0; tier < 2; ++tier) {
      if ((where >> tier & 1U) == 0) continue;
      plan.start.push_back({{i}, {tier}, ends[tier]});
      ends[tier] += round_up(graph.tensors[i].bytes, machine.tiers[tier].granularity).count;
    }
  }
  plan.budget = {4_MiB, 4_MiB};
  return plan;
}

bool is_state(const Tensor& tensor) { return tensor.persistent && tensor.type == DataType::f32; }

/// Two graphs of one network, on tiers that both have.
struct Subject {
  Graph before, after;
  OpenTiers tiers;
  Machine machine;
  std::vector<std::vector<float>> values;  ///< of the tensors of `before`
  FakeTier* fake = nullptr;

  Subject(Graph a, Graph b, const SlowTier& slow, Bytes fast = 4_MiB)
      : before(std::move(a)), after(std::move(b)), machine(slow.machine) {
    const std::vector<Bytes> budget{fast, 4_MiB};
    tiers = OpenTiers::open({before.name, machine, budget, opening(fake)}).value();
    values.resize(before.tensors.size());
  }

  Store store(const Graph& graph, std::uint64_t seed) const {
    return {**processor_backend(), graph, machine, placed(graph, machine, seed), tiers};
  }

  void fill(const Store& store, std::uint64_t seed) {
    SplitMix random(seed);
    for (std::uint32_t i = 0; i < before.tensors.size(); ++i) {
      if (!is_state(before.tensors[i])) continue;
      values[i].resize(static_cast<std::size_t>(before.tensors[i].shape.elements()));
      for (float& value : values[i]) value = static_cast<float>(random.below(1 << 24));
      store.write({i}, values[i]);
    }
  }

  void expect_all(const Store& store) const {
    for (std::uint32_t i = 0; i < before.tensors.size(); ++i) {
      if (!is_state(before.tensors[i])) continue;
      const TensorId id = find_tensor(after, before.tensors[i].name);
      EXPECT_TRUE(same_bits(store.read(id), values[i])) << after[id].name;
      for (const TierAddress address : store.addresses(id)) {
        std::vector<std::byte> first(after[id].bytes.count), other(first.size());
        tiers.read(store.addresses(id).front(), first);
        tiers.read(address, other);
        EXPECT_EQ(first, other) << after[id].name;
      }
    }
  }
};

Graph compiled(const Graph& graph) { return compile(graph, 1).value().graph; }

/// Compiling takes longer than the tests do.
const Graph& long_gpt() {
  static const Graph graph = compiled(small_gpt(12));
  return graph;
}
const Graph& short_gpt() {
  static const Graph graph = compiled(small_gpt(5));
  return graph;
}

TEST(Relocation, CarriesEverythingFromAnyPlacesToAnyOthers) {
  for (const SlowTier& slow : {fake_memory(), fake_blocks()}) {
    Subject subject(long_gpt(), short_gpt(), slow);
    std::size_t waited = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(slow.name + " " + std::to_string(seed));
      const Store from = subject.store(subject.before, 2 * seed),
                  to = subject.store(subject.after, 2 * seed + 1);
      subject.fill(from, seed);
      Relocation relocation({subject.before, from}, {subject.after, to}, subject.tiers);
      relocation.run();
      subject.expect_all(to);
      waited += relocation.waited();
    }
    EXPECT_GT(waited, 0U) << "some lay crosswise";
  }
}

TEST(Relocation, MakesPositionsAnew) {
  Subject subject(long_gpt(), short_gpt(), fake_memory());
  const Store from = subject.store(subject.before, 1), to = subject.store(subject.after, 2);
  subject.fill(from, 1);
  Relocation({subject.before, from}, {subject.after, to}, subject.tiers).run();
  const TensorId places = find_tensor(subject.after, "tokens.places");
  ASSERT_TRUE(places);
  std::vector<std::int32_t> stored(10);
  to.load(places, std::as_writable_bytes(std::span(stored)));
  EXPECT_EQ(stored, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
}

/// Not yet lowered, tensors lie row by row.
TEST(Relocation, ChangesLayouts) {
  const Graph blocked = compiled(small_resnet()), plain = small_resnet();
  ASSERT_TRUE(std::any_of(blocked.tensors.begin(), blocked.tensors.end(),
                          [](const Tensor& tensor) { return is_state(tensor) && !tensor.layout.empty(); }));
  for (const SlowTier& slow : {fake_memory(), fake_blocks()}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      for (const bool back : {false, true}) {
        Subject subject(back ? plain : blocked, back ? blocked : plain, slow);
        const Store from = subject.store(subject.before, 2 * seed),
                    to = subject.store(subject.after, 2 * seed + 1);
        subject.fill(from, seed);
        Relocation relocation({subject.before, from}, {subject.after, to}, subject.tiers);
        relocation.run();
        subject.expect_all(to);
        EXPECT_EQ(relocation.most_held(), Bytes{0}) << "there is room in the fastest tier";
      }
    }
  }
}

/// A tensor is kept whole in one graph and in parts in the other, or in other parts.
TEST(Relocation, ChangesParts) {
  const Graph whole = test::classifier(60, 131);
  const std::vector<Graph> kept{compiled(whole), compiled(test::split(whole, 40)),
                                compiled(test::split(whole, 75))};
  ASSERT_NE(find_parts(kept[1], "first.weight").size(), find_parts(kept[2], "first.weight").size());
  for (const SlowTier& slow : {fake_memory(), fake_blocks()}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(seed);
      Subject subject(kept[seed % 3], kept[(seed + 1 + seed / 3 % 2) % 3], slow);
      const Store from = subject.store(subject.before, 2 * seed),
                  to = subject.store(subject.after, 2 * seed + 1);
      subject.fill(from, seed);
      subject.fake->fail_randomly(0.05, FakeTier::Fault::io_error, seed);
      Relocation relocation({subject.before, from}, {subject.after, to}, subject.tiers);
      for (bool done = false; !done;) {
        try {
          relocation.run();
          done = true;
        } catch (const EnvironmentError&) {
        }
      }
      subject.fake->heal();
      EXPECT_EQ(relocation.most_held(), Bytes{0}) << "there is room in the fastest tier";
      for (const WholeTensor& tensor : whole_tensors(subject.after)) {
        std::vector<float> expected, found;
        for (const TensorId part : find_parts(subject.before, tensor.name))
          expected.insert(expected.end(), subject.values[part.index].begin(),
                          subject.values[part.index].end());
        for (const TensorId part : tensor.parts) {
          const std::vector<float> rows = to.read(part);
          found.insert(found.end(), rows.begin(), rows.end());
        }
        EXPECT_TRUE(same_bits(found, expected)) << tensor.name;
      }
    }
  }
}

/// Parts are put together to rows and cut anew: two copies, one tensor at a time since none is in the way.
TEST(Relocation, CountsTheCopiesThatFastMemoryHasNoRoomFor) {
  const Graph whole = test::classifier(60, 131), parts = test::split(whole, 40);
  const Bytes weight = whole[find_tensor(whole, "first.weight")].bytes;
  const std::pair<Bytes, Bytes> cases[] = {{4_KiB, weight * 2}, {weight + 4_KiB, weight}, {4_MiB, Bytes{0}}};
  for (const bool back : {false, true}) {
    for (const auto& [fast, held] : cases) {
      SCOPED_TRACE(to_string(fast));
      Subject subject(back ? parts : whole, back ? whole : parts, fake_blocks(), fast);
      const Store from = kept_in_slow_tier(subject.before, subject.machine, subject.tiers, 0_B),
                  to = kept_in_slow_tier(subject.after, subject.machine, subject.tiers, 2_MiB);
      subject.fill(from, 1);
      Relocation relocation({subject.before, from}, {subject.after, to}, subject.tiers);
      relocation.run();
      EXPECT_EQ(relocation.waited(), 0U);
      EXPECT_EQ(relocation.most_held(), held);
    }
  }
}

TEST(Relocation, WritesNothingWhereEverythingIsInItsPlace) {
  Subject subject(long_gpt(), long_gpt(), fake_blocks());
  const Store from = subject.store(subject.before, 1), to = subject.store(subject.after, 1);
  subject.fill(from, 1);
  Relocation relocation({subject.before, from}, {subject.after, to}, subject.tiers);
  const auto before = subject.fake->operations();
  relocation.run();
  EXPECT_LE(subject.fake->operations() - before, 1U) << "but for the positions";
  EXPECT_EQ(relocation.most_held(), Bytes{0});
  subject.expect_all(to);
}

TEST(Relocation, GoesOnAfterAnyFailureWithoutLoss) {
  Subject subject(long_gpt(), short_gpt(), fake_blocks());
  int failures = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Store from = subject.store(subject.before, 2 * seed),
                to = subject.store(subject.after, 2 * seed + 1);
    subject.fill(from, seed);
    Relocation relocation({subject.before, from}, {subject.after, to}, subject.tiers);
    const auto fault = seed % 2 == 0 ? FakeTier::Fault::io_error : FakeTier::Fault::no_space;
    subject.fake->fail_randomly(0.1, fault, seed);
    for (bool done = false; !done;) {
      try {
        relocation.run();
        done = true;
      } catch (const EnvironmentError&) {
        ++failures;
      }
    }
    subject.fake->heal();
    subject.expect_all(to);
  }
  EXPECT_GT(failures, 20);
}

}  // namespace
}  // namespace terrace
