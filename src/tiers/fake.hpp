// A fake tier is tiny memory that fails on command, for tests of everything that must survive a failing
// device.
//
// An operation is one block request (block shape) or one pace() call (addressable shape), counted from 1 in
// the order in which they start. It is thread-safe: a test may change the script while a mover works.
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
    short_transfer,  ///< half the bytes, at least one block, are transferred and reported (EIO where the tier
                     ///< is addressable)
    no_progress,     ///< zero bytes are transferred and reported (EIO where the tier is addressable)
  };

  /// Makes the `nth` operation from now (1 = the next) fail, counting only operations of kind `only` if that
  /// is given. Several faults may be pending.
  virtual void fail(std::uint64_t nth, Fault fault, std::optional<Access> only = {}) = 0;
  /// Makes each later operation fail with this probability, drawn from a seeded generator; 0 ends it.
  virtual void fail_randomly(double probability, Fault fault, std::uint64_t seed) = 0;
  /// Makes each later operation take this long.
  virtual void delay(Seconds time) = 0;
  /// Removes all pending faults and delays.
  virtual void heal() = 0;
  virtual std::uint64_t operations() const = 0;
};

/// Opens a fake tier; throws ResultError where open_fake_tier() fails. pre: spec.kind == fake
std::unique_ptr<FakeTier> make_fake_tier(const TierSpec& spec);

}  // namespace terrace
