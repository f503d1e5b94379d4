// SPDX-License-Identifier: Apache-2.0
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
#include <random>
#include <shared_mutex>
#include <thread>

#include "support/contents.hpp"
#include "support/stress_factor.hpp"
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
      : fault_rate_(fault_rate),
        moves_(policy != "first-touch"),
        manager_(open_tiers({"fake:32KiB", "fake:64KiB", "fake:512KiB,blocks"}), make_policy(policy).value(),
                 options(fault_rate)) {
    std::mt19937_64 random(1);
    if (fault_rate > 0) choose_faults(random);
  }

  void run(int operations) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t, operations] { work(t, operations / kThreads); });
    }
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

  // The generator must do what it claims: each operation is carried out often, and there is trouble enough.
  void check_distribution(int operations) {
    for (const auto& count : done_) EXPECT_GT(count.load(), operations / 200);
    EXPECT_LT(refused_.load(), operations / 10);
    const ManagerStatistics statistics = manager_.statistics();
    if (moves_) {
      EXPECT_GT(statistics.copies, 0u);
    }
    if (fault_rate_ > 0) {
      EXPECT_GT(statistics.failed_copies, 0u);
    } else {
      EXPECT_EQ(raised_.load(), 0);
    }
  }

 private:
  // Where devices fail, a helper thread is lost now and then, too.
  static MoverOptions options(double fault_rate) {
    MoverOptions options;
    options.helpers = 2;
    options.chunk = 2_KiB;
    options.bounce = 1_MiB;
    if (fault_rate > 0) {
      options.before_chunk = [chunks = std::make_shared<std::atomic<int>>(0)](unsigned) {
        if (++*chunks % 20'000 == 0) throw std::runtime_error("this helper is lost");
      };
    }
    return options;
  }

  void choose_faults(std::mt19937_64& random) {
    using Fault = FakeTier::Fault;
    constexpr std::array kFaults{Fault::io_error, Fault::no_space, Fault::short_transfer, Fault::no_progress};
    for (std::uint32_t tier = 0; tier < 3; ++tier) {
      as_fake(manager_.tier({tier})).fail_randomly(fault_rate_, kFaults[random() % 4], random());
    }
  }

  void work(int thread, int operations) {
    std::mt19937_64 random(1000 + thread);
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      const auto kind =
          static_cast<Operation>(std::discrete_distribution<int>{35, 20, 30, 3, 6, 3, 3}(random));
      try {
        if (step(kind, places_[random() % kPlaces], random)) ++done_[static_cast<std::size_t>(kind)];
      } catch (const EnvironmentError&) {
        ++raised_;
      }
      const Result<void> sound = manager_.validate();
      EXPECT_TRUE(sound.ok()) << sound.error().message << "; thread " << thread << ", operation " << i;
    }
  }

  // Returns whether there was something to do and it was done.
  bool step(Operation kind, Place& place, std::mt19937_64& random) {
    switch (kind) {
      case Operation::create:
        return create(place, random);
      case Operation::destroy:
        return end(place, &Manager::destroy);
      case Operation::retire:
        return end(place, &Manager::retire);
      case Operation::layer:
        return boundary(random);
      default:
        break;
    }
    const std::shared_lock alive(place.life);
    if (!place.object) return false;
    if (kind == Operation::hint) return hint(*place.object, random() % 4);
    return use(place, kind == Operation::write ? Access::write : Access::read, random());
  }

  bool use(Place& place, Access access, std::uint64_t seed) {
    const Result<Pin> pin = manager_.pin(*place.object, access);
    if (!pin) return ++refused_, false;  // the other threads' pins leave no room
    if (access == Access::write) {
      fill(*pin, place.seed = seed);
    } else {
      EXPECT_EQ(first_difference(*pin, place.seed), pin->size().count) << "contents lost";
    }
    return true;
  }

  bool boundary(std::mt19937_64& random) {
    constexpr std::array kBoundaries{&Manager::layer_end, &Manager::layer_end, &Manager::step_begin,
                                     &Manager::step_end};
    (manager_.*kBoundaries[random() % 4])();
    if (fault_rate_ > 0) choose_faults(random);
    return true;
  }

  bool hint(ObjectId object, std::uint64_t which) {
    constexpr std::array kHints{&Manager::will_read, &Manager::will_write, &Manager::will_use,
                                &Manager::archive};
    (manager_.*kHints[which])(object);
    return true;
  }

  bool create(Place& place, std::mt19937_64& random) {
    const std::unique_lock alone(place.life);
    if (place.object) return false;
    const Result<ObjectId> object = manager_.create(Bytes{1 + random() % kLargest.count});
    if (!object) return ++refused_, false;
    place.object = *object;
    if (first_write(place, random())) return true;
    manager_.destroy(*object);
    place.object.reset();
    return false;
  }

  bool first_write(Place& place, std::uint64_t seed) {
    try {
      return use(place, Access::write, seed);
    } catch (const EnvironmentError&) {
      ++raised_;
      return false;
    }
  }

  bool end(Place& place, void (Manager::*how)(ObjectId)) {
    const std::unique_lock alone(place.life);
    if (!place.object) return false;
    (manager_.*how)(*place.object);
    place.object.reset();
    return true;
  }

  const double fault_rate_;
  const bool moves_;  ///< first-touch hardly copies, by chance not at all
  Manager manager_;
  std::array<Place, kPlaces> places_;
  std::array<std::atomic<int>, static_cast<std::size_t>(Operation::count)> done_{};
  std::atomic<int> raised_ = 0, refused_ = 0;
};

class EveryPolicyStress : public testing::TestWithParam<std::string_view> {
 protected:
  // The two policies that use most of the manager get the full length, the others a quarter of it.
  int operations() const {
    const bool full = GetParam() == "LMP" || GetParam() == "async-LMP";
    return stress_factor() * (full ? 120'000 : 30'000);
  }
};

TEST_P(EveryPolicyStress, LosesNothingWithHealthyDevices) {
  Stress stress(GetParam(), 0);
  stress.run(operations() / 4);
  stress.check_distribution(operations() / 4);
  stress.check_all();
}

TEST_P(EveryPolicyStress, LosesNothingWithFailingDevices) {
  Stress stress(GetParam(), 0.01);
  stress.run(operations());
  stress.check_distribution(operations());
  stress.check_all();
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicyStress, testing::ValuesIn(policy_names()),
                         [](const auto& tested) {
                           std::string name(tested.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace terrace
