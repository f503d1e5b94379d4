// SPDX-License-Identifier: Apache-2.0
// Locality learns how much of a part is worth bringing when one page of it is touched: all of it, where its
// other pages are usually touched soon after, or that page alone, where accesses are scattered.
//
// It learns from probes. A probe brings one page only; if two more pages of the same part are wanted within
// the next few faults, the whole part would have been better: it takes twice as long to fetch as one page and
// drives out fifteen more. One further page says little, because in a small memory scattered touches hit the
// same part again by chance. Memory is judged by areas of 64 MiB, because a program's arrays and its tables
// behave differently; an area of which little is known yet is judged by what was learned last, anywhere.
// Where whole parts come, every sixteenth fault is a probe, so that a change is noticed, and every second one
// until enough is known. It is plain data without a clock; the pager's lock guards it.
#pragma once

#include <array>
#include <cstdint>

#include "pages/geometry.hpp"

namespace terrace::pages {

/// How much a fault brings.
enum class Bringing { learned, whole, quarter, page };

class Locality {
 public:
  explicit Locality(Bringing bringing = Bringing::learned) : bringing_(bringing) {}

  /// A page of this part is wanted. Returns whether all of it should come.
  bool whole(Address part) {
    if (bringing_ != Bringing::learned) return bringing_ == Bringing::whole;
    ++faults_;
    for (Probe& probe : probes_) {
      if (probe.part == part) {
        if (++probe.more < kMore) return false;
        probe.part = 0;
        raise(part);
        return true;
      }
      if (probe.part != 0 && faults_ - probe.born >= probes_.size()) {
        lower(probe.part);
        probe.part = 0;
      }
    }
    const Area& area = area_of(part);
    const std::uint8_t score = area.probes < kEnough ? everywhere_.score : area.score;
    const unsigned every = everywhere_.probes < kEnough ? 2 : kProbeEvery;
    if (score >= kWorth && faults_ % every != 0) return true;
    // Whatever was in this place is forgotten by now.
    probes_[faults_ % probes_.size()] = {part, faults_, 0};
    return false;
  }

  /// The pages that come where the part does not come whole.
  PageMask around(Address address) const {
    if (bringing_ != Bringing::quarter) return page_bit(address);
    return pages_within(part_start(address), address & ~Address{kPart / 4 - 1},
                        (address | Address{kPart / 4 - 1}) + 1);
  }

 private:
  static constexpr unsigned kProbeEvery = 16;
  static constexpr std::uint8_t kWorth = 128;  // of 255: half of the probes
  static constexpr std::uint8_t kMore = 2;     // further pages of a part
  static constexpr std::uint8_t kEnough = 8;   // probes

  struct Area {
    std::uint8_t score = 160, probes = 0;
  };
  Area& area_of(Address part) { return areas_[(part >> 26) * 0x9E3779B97F4A7C15 >> 58]; }
  void raise(Address part) {
    for (Area* area : {&area_of(part), &everywhere_}) {
      area->score = static_cast<std::uint8_t>(area->score + (255 - area->score + 7) / 8);
      if (area->probes < kEnough) ++area->probes;
    }
  }
  void lower(Address part) {
    for (Area* area : {&area_of(part), &everywhere_}) {
      area->score = static_cast<std::uint8_t>(area->score - (area->score + 7) / 8);
      if (area->probes < kEnough) ++area->probes;
    }
  }

  Bringing bringing_;
  std::array<Area, 64> areas_{};
  Area everywhere_;
  struct Probe {
    Address part = 0;
    std::uint32_t born = 0;
    std::uint8_t more = 0;  // pages that were wanted since
  };
  std::array<Probe, 64> probes_{};  // a probe is remembered for as many faults
  std::uint32_t faults_ = 0;
};

}  // namespace terrace::pages
