#include "tiers/fault_script.hpp"

#include "base/check.hpp"

namespace terrace {

FaultScript::Fate FaultScript::next(Access access) {
  const std::lock_guard lock(mutex_);
  ++operations_;
  Fate fate{due(access), delay_};
  // A number is drawn for every operation, so that a pending fault does not shift the random ones.
  const bool unlucky = probability_ > 0 && std::bernoulli_distribution(probability_)(random_);
  if (unlucky && !fate.fault) fate.fault = random_fault_;
  return fate;
}

std::optional<FakeTier::Fault> FaultScript::due(Access access) {
  std::optional<FakeTier::Fault> fault;
  std::erase_if(pending_, [&](Pending& pending) {
    if (pending.only.value_or(access) != access || --pending.countdown > 0) return false;
    fault = pending.fault;
    return true;
  });
  return fault;
}

void FaultScript::fail(std::uint64_t nth, FakeTier::Fault fault, std::optional<Access> only) {
  check(nth > 0, "operations are counted from 1");
  const std::lock_guard lock(mutex_);
  pending_.push_back({nth, fault, only});
}

void FaultScript::fail_randomly(double probability, FakeTier::Fault fault, std::uint64_t seed) {
  check(probability >= 0 && probability <= 1, "a probability lies between 0 and 1");
  const std::lock_guard lock(mutex_);
  probability_ = probability;
  random_fault_ = fault;
  random_.seed(seed);
}

void FaultScript::delay(Seconds time) {
  check(time >= Seconds{0}, "a delay is not negative");
  const std::lock_guard lock(mutex_);
  delay_ = time;
}

void FaultScript::heal() {
  const std::lock_guard lock(mutex_);
  pending_.clear();
  probability_ = 0;
  delay_ = Seconds{0};
}

std::uint64_t FaultScript::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

}  // namespace terrace
