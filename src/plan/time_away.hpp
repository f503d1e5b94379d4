// SPDX-License-Identifier: Apache-2.0
// The time during which an item of a packing is away: its bytes are free for others meanwhile, and are its
// own again afterwards.
#pragma once

#include <cstdint>

namespace terrace {

struct TimeAway {
  std::uint32_t left = ~std::uint32_t{0};  ///< the last position before it
  std::uint32_t back = 0;                  ///< the first position after it; zero: it never is away

  bool exists() const noexcept { return back != 0; }
  /// Whether what is live from `first` to `last` comes and goes while the item is away.
  bool covers(std::uint32_t first, std::uint32_t last) const noexcept {
    return (first > left) & (last < back);
  }
};

}  // namespace terrace
