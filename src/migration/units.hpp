// SPDX-License-Identifier: Apache-2.0
// What moves as one: tensors grouped by the layers that use them (002 section 4.4.2).
//
//   short-lived   made, used and over within one layer; never moves
//   long-lived    all others
//   unit          one tensor, or several of a kind that the same layers use; they lie side by side,
//                 the most accessed first, and travel as one transfer
#pragma once

#include <optional>
#include <vector>

#include "migration/step_view.hpp"

namespace terrace::migration {

/// A kernel that uses a unit.
struct Touch {
  std::uint32_t kernel;
  Seconds slow{0};  ///< how long reading and writing the unit in its backing tier takes
};

struct Unit {
  std::vector<TensorId> tensors;
  Bytes size;           ///< what its regions take in fast memory
  double accesses = 0;  ///< how often a byte of it is read or written in one step
  bool short_lived = false, persistent = false, given = false;
  bool fixed = false;  ///< never leaves fast memory
  std::optional<TierId>
      backing_tier;            ///< where it is when it is not in fast memory; none: there is no such place
  bool in_place = false;       ///< kernels can use it there
  std::vector<Touch> touches;  ///< in order; the step's end is one for results
};

struct Units {
  std::vector<Unit> all;
  std::vector<std::uint32_t> of;  ///< by tensor
};

/// Which tensors of the same layers share units: none; small ones, up to a size beyond which a transfer gains
/// nothing from being larger; or as in 002 section 4.4.2 those of every size that are made within the step.
enum class Grouping { off, small, published };
enum class ShortLived { apart, as_others };

/// Groups the tensors of a step. With ShortLived::as_others every tensor counts as long-lived.
Units make_units(const StepView& view, Grouping grouping, ShortLived short_lived);

/// Gives a unit another backing tier, with what its touches take there. pre: linked with tier 0 both ways
void set_backing_tier(const StepView& view, Units& units, std::uint32_t unit, TierId tier);

/// Returns whether the tensor is made, used and dead within one layer.
bool is_short_lived(const StepView& view, TensorId tensor);

}  // namespace terrace::migration
