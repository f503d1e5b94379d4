// A described tier has a description but no bytes. It serves rehearsals (mover.hpp), in which a manager
// decides about memory that need not exist.
#pragma once

#include <utility>

#include "terrace/tier.hpp"

namespace terrace {

class DescribedTier final : public Tier {
 public:
  explicit DescribedTier(TierDescription description) : description_(std::move(description)) {}
  const TierDescription& description() const noexcept override { return description_; }

 private:
  TierDescription description_;
};

}  // namespace terrace
