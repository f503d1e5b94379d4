// A FaultScript says which operations of a fake tier fail and how long they take. It is thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include "tiers/fake.hpp"

namespace terrace {

class FaultScript {
 public:
  struct Fate {
    std::optional<FakeTier::Fault> fault;
    Seconds delay{0};
  };

  /// Counts one operation and returns its outcome.
  Fate next(Access access);

  void fail(std::uint64_t nth, FakeTier::Fault fault, std::optional<Access> only);
  void fail_randomly(double probability, FakeTier::Fault fault, std::uint64_t seed);
  void delay(Seconds time);
  void heal();
  std::uint64_t operations() const;

 private:
  struct Pending {
    std::uint64_t countdown;
    FakeTier::Fault fault;
    std::optional<Access> only;
  };

  std::optional<FakeTier::Fault> due(Access access);

  mutable std::mutex mutex_;  // guards all below
  std::vector<Pending> pending_;
  double probability_ = 0;
  FakeTier::Fault random_fault_ = FakeTier::Fault::io_error;
  std::mt19937_64 random_;
  Seconds delay_{0};
  std::uint64_t operations_ = 0;
};

}  // namespace terrace
