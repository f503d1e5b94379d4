// Fake tier: tiny memory that fails on command, for tests of everything that must survive a failing device.
//
// An operation is one block request (block shape) or one pace() call (addressable shape), counted from 1 as
// they start. Thread-safe: a test may change the script while a mover works.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "terrace/tier.hpp"

namespace terrace {

class FakeTier : public Tier {
 public:
  enum class Fault {
    io_error,        ///< EIO
    no_space,        ///< ENOSPC
    short_transfer,  ///< half the bytes, at least one block, are done and reported (an EIO where the tier is
                     ///< addressable)
    no_progress,     ///< zero bytes are done and reported (an EIO where the tier is addressable)
  };

  /// The `nth` operation from now (1 = the next) fails, counting only `only` if given. Several may be
  /// pending.
  virtual void fail(std::uint64_t nth, Fault fault, std::optional<Access> only = {}) = 0;
  /// Each later operation fails with this probability, by a seeded generator; 0 ends it.
  virtual void fail_randomly(double probability, Fault fault, std::uint64_t seed) = 0;
  /// Each later operation takes this long.
  virtual void delay(Seconds time) = 0;
  /// Forgets all pending faults and delays.
  virtual void heal() = 0;
  virtual std::uint64_t operations() const = 0;
};

/// Throws ResultError where open_fake_tier() fails. pre: spec.kind == fake
std::unique_ptr<FakeTier> make_fake_tier(const TierSpec& spec);
/// The same for open_tier(), which returns its errors.
Result<std::unique_ptr<Tier>> open_fake_tier(const TierSpec& spec);

}  // namespace terrace
