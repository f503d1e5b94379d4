// SPDX-License-Identifier: Apache-2.0
// When regions of a near tier (hops.hpp) have nothing to do, and which of them are given up meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "migration/plan_regions.hpp"
#include "terrace/simulate.hpp"

namespace terrace {

/// A transfer that uses a region of the near tier.
struct NearUse {
  std::uint32_t instruction = 0;
  bool writes = false;
};

/// A stretch in which a region of the near tier keeps a value for the transfer at its end. That of a region
/// which outlives the step, from its last transfer to its first in the next step, goes round.
struct NearSpan {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t region = 0;
  std::uint32_t begin = kNone, end = kNone;  ///< instructions, the transfers; kNone: there is none
  bool round = false;
  bool is_read = true;  ///< the transfer at its end reads the value
  Seconds fetch_by{0};  ///< when its way back has to begin, at the latest
};

class NearSpans {
 public:
  /// `timeline`: of the plan on a machine whose near tier is large enough. Borrows all.
  NearSpans(const PlanRequest& request, const Plan& plan, const PlanRegions& regions, TierId near, TierId far,
            const Timeline& timeline);

  /// Spans in which regions are given up, so that no more than `room` bytes of the near tier are taken at
  /// once if all transfers are on time; all there are where that is not enough.
  std::vector<NearSpan> chosen(Bytes room) const;

  /// When each instruction is issued.
  const std::vector<Seconds>& issued() const { return issued_; }
  const std::vector<NearUse>& uses(std::uint32_t region) const { return uses_[region]; }

 private:
  struct Relief {
    NearSpan span;
    std::uint32_t from, until;  ///< instructions between which its bytes are free; round: outside of them
    Seconds length{0};
    double bytes = 0;
    bool covers(std::uint32_t instruction) const {
      const bool inside = from <= instruction && instruction < until;
      return span.round ? !inside : inside;
    }
  };
  void find_uses(const PlanRequest& request, const Plan& plan);
  void add_spans(const PlanRequest& request, std::uint32_t region, const Timeline& timeline);
  std::uint32_t first_at(Seconds time) const;

  const PlanRegions& regions_;
  TierId near_, far_;
  std::vector<Seconds> issued_;
  std::vector<std::vector<NearUse>> uses_;  ///< by region
  std::vector<bool> stays_;                 ///< by region: it cannot be given up
  std::vector<Relief> reliefs_;
  std::vector<double> taken_;  ///< by instruction: bytes of the near tier
};

}  // namespace terrace
