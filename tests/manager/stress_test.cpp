// Random operations of four threads over three tiers with failing devices, checked against shadow data at
// each step.
//
// Each place has one object and the seed its contents must follow. The manager's pins are the only
// synchronisation of contents, so the thread sanitizer sees if they let a reader and a writer, or a copy and
// a writer, meet.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <random>
#include <shared_mutex>
#include <thread>

#include "support/contents.hpp"
#include "support/tiers.hpp"
#include "terrace/error.hpp"
#include "terrace/manager.hpp"

namespace terrace {
namespace {
using namespace literals;

constexpr int kThreads = 4;
constexpr std::size_t kPlaces = 48;
constexpr Bytes kLargest = 6_KiB;

struct Place {
  std::shared_mutex life;  // exclusive to create or end the object
  std::optional<ObjectId> object;
  std::uint64_t seed = 0;  // guarded by pins: written under a write pin, read under any
};

enum class Operation { read, write, hint, layer, create, destroy, retire, count };

class Stress {
 public:
  Stress(std::string_view policy, double fault_rate)
      : manager_(open_tiers({"fake:32KiB", "fake:64KiB", "fake:512KiB,blocks"}), make_policy(policy).value(),
                 options()) {
    for (std::uint32_t tier = 0; tier < 3; ++tier) {
      as_fake(manager_.tier({tier}))
          .fail_randomly(fault_rate, tier == 1 ? FakeTier::Fault::no_space : FakeTier::Fault::io_error, tier);
    }
  }

  void run(int operations) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([this, t, operations] { work(t, operations / kThreads); });
    for (std::thread& thread : threads) thread.join();
  }

  // With healthy devices everything that lives must be readable and right.
  void check_all() {
    for (std::uint32_t tier = 0; tier < 3; ++tier) as_fake(manager_.tier({tier})).heal();
    manager_.settle();
    std::size_t living = 0;
    for (Place& place : places_) {
      if (!place.object) continue;
      ++living;
      EXPECT_TRUE(holds(manager_, *place.object, place.seed));
    }
    EXPECT_TRUE(manager_.validate().ok());
    EXPECT_GT(living, kPlaces / 4);
  }

  // The generator must do what it claims: each operation often, and enough trouble to matter.
  void check_distribution(int operations, double fault_rate) {
    for (const auto& count : done_) EXPECT_GT(count.load(), operations / 100);
    const ManagerStatistics statistics = manager_.statistics();
    EXPECT_GT(statistics.copies, static_cast<std::uint64_t>(operations) / 100);
    if (fault_rate > 0) {
      EXPECT_GT(statistics.failed_copies, 10u);
    } else {
      EXPECT_EQ(raised_.load(), 0);
    }
  }

 private:
  static MoverOptions options() {
    MoverOptions options;
    options.helpers = 2;
    options.chunk = 2_KiB;
    options.bounce = 1_MiB;
    return options;
  }

  void work(int thread, int operations) {
    std::mt19937_64 random(1000 + thread);
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      const auto kind =
          static_cast<Operation>(std::discrete_distribution<int>{35, 20, 30, 3, 6, 3, 3}(random));
      ++done_[static_cast<std::size_t>(kind)];
      try {
        step(kind, places_[random() % kPlaces], random);
      } catch (const EnvironmentError&) {
        ++raised_;
      }
      const Result<void> sound = manager_.validate();
      EXPECT_TRUE(sound.ok()) << sound.error().message;
    }
  }

  void step(Operation kind, Place& place, std::mt19937_64& random) {
    switch (kind) {
      case Operation::create:
        return create(place, random);
      case Operation::destroy:
        return end(place, &Manager::destroy);
      case Operation::retire:
        return end(place, &Manager::retire);
      case Operation::layer:
        return random() % 8 == 0 ? manager_.step_end() : manager_.layer_end();
      default:
        break;
    }
    const std::shared_lock alive(place.life);
    if (!place.object) return;
    if (kind == Operation::hint) return hint(*place.object, random() % 4);
    const Access access = kind == Operation::write ? Access::write : Access::read;
    const Result<Pin> pin = manager_.pin(*place.object, access);
    if (!pin) return;  // all of fast memory is pinned by the other threads
    if (access == Access::write) {
      fill(*pin, place.seed = random());
    } else {
      EXPECT_EQ(first_difference(*pin, place.seed), pin->size().count) << "contents lost";
    }
  }

  void hint(ObjectId object, std::uint64_t which) {
    constexpr std::array hints{&Manager::will_read, &Manager::will_write, &Manager::will_use,
                               &Manager::archive};
    (manager_.*hints[which])(object);
  }

  void create(Place& place, std::mt19937_64& random) {
    const std::unique_lock alone(place.life);
    if (place.object) return;
    const Result<ObjectId> object = manager_.create(Bytes{1 + random() % kLargest.count});
    if (!object) return;
    place.object = *object;
    if (!first_write(place, random())) {
      manager_.destroy(*object);
      place.object.reset();
    }
  }

  bool first_write(Place& place, std::uint64_t seed) {
    try {
      const Result<Pin> pin = manager_.pin(*place.object, Access::write);
      if (pin) fill(*pin, place.seed = seed);
      return pin.ok();
    } catch (const EnvironmentError&) {
      ++raised_;
      return false;
    }
  }

  void end(Place& place, void (Manager::*how)(ObjectId)) {
    const std::unique_lock alone(place.life);
    if (!place.object) return;
    (manager_.*how)(*place.object);
    place.object.reset();
  }

  Manager manager_;
  std::array<Place, kPlaces> places_;
  std::array<std::atomic<int>, static_cast<std::size_t>(Operation::count)> done_{};
  std::atomic<int> raised_ = 0;
};

int operations() {
  const char* longer = std::getenv("TERRACE_STRESS");
  return 100'000 * (longer != nullptr ? std::max(1, std::atoi(longer)) : 1);
}

class EveryPolicyStress : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryPolicyStress, LosesNothingWithHealthyDevices) {
  Stress stress(GetParam(), 0);
  stress.run(operations() / 4);
  stress.check_distribution(operations() / 4, 0);
  stress.check_all();
}

TEST_P(EveryPolicyStress, LosesNothingWithFailingDevices) {
  constexpr double kFaultRate = 0.01;
  Stress stress(GetParam(), kFaultRate);
  stress.run(operations());
  stress.check_distribution(operations(), kFaultRate);
  stress.check_all();
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicyStress, testing::Values("LM", "LMP", "lru", "async-LMP"),
                         [](const auto& tested) {
                           std::string name(tested.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace terrace
