// SPDX-License-Identifier: Apache-2.0
#include "profile/placements.hpp"

#include <algorithm>

#include "graph/operand_tensors.hpp"

namespace terrace {
namespace {

/// For each operand, which of the kernel's tensors it is.
std::vector<std::size_t> numbered_tensors(const Kernel& kernel) {
  std::vector<TensorId> tensors;
  std::vector<std::size_t> numbers;
  for_each_operand_tensor(kernel, [&](TensorId id) {
    const auto known = std::find(tensors.begin(), tensors.end(), id);
    numbers.push_back(static_cast<std::size_t>(known - tensors.begin()));
    if (known == tensors.end()) tensors.push_back(id);
  });
  return numbers;
}

class Enumeration {
 public:
  Enumeration(const Kernel& kernel, std::span<const TierId> further)
      : numbers_(numbered_tensors(kernel)), further_(further) {
    if (numbers_.empty() || further.empty()) return;
    tensors_ = *std::max_element(numbers_.begin(), numbers_.end()) + 1;
    for (const TierId tier : further_) add(std::vector<TierId>(tensors_, tier));
    for (const TierId tier : further_) add_each_alone(tier);
    if (are_few()) add_all();
  }
  std::vector<OperandTiers> all() && { return std::move(chosen_); }

 private:
  void add_each_alone(TierId tier) {
    for (std::size_t i = 0; i < tensors_; ++i) {
      std::vector<TierId> tiers(tensors_);
      tiers[i] = tier;
      add(tiers);
    }
  }

  bool are_few() const {
    std::size_t combinations = 1;
    for (std::size_t i = 0; i < tensors_ && combinations <= kAllCombinations; ++i)
      combinations *= further_.size() + 1;
    return combinations <= kAllCombinations;
  }

  /// Counts with one digit for each tensor; the first, all zeros, is all in tier 0.
  void add_all() {
    std::vector<std::size_t> digits(tensors_);
    const auto next = [&] {
      for (std::size_t& digit : digits) {
        if (++digit <= further_.size()) return true;
        digit = 0;
      }
      return false;
    };
    while (next()) {
      std::vector<TierId> tiers;
      for (const std::size_t digit : digits) tiers.push_back(digit == 0 ? TierId{0} : further_[digit - 1]);
      add(tiers);
    }
  }

  void add(const std::vector<TierId>& by_tensor) {
    OperandTiers placement;
    for (const std::size_t number : numbers_) placement.push_back(by_tensor[number]);
    if (std::find(chosen_.begin(), chosen_.end(), placement) == chosen_.end())
      chosen_.push_back(std::move(placement));
  }

  std::vector<std::size_t> numbers_;
  std::span<const TierId> further_;
  std::size_t tensors_ = 0;
  std::vector<OperandTiers> chosen_;
};

}  // namespace

std::vector<OperandTiers> placements(const Kernel& kernel, std::span<const TierId> further) {
  return Enumeration(kernel, further).all();
}

}  // namespace terrace
