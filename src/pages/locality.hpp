// SPDX-License-Identifier: Apache-2.0
// Locality learns how much of a part is worth bringing when one page of it is touched: that page alone, the
// four or eight pages around it, or all of the part.
//
// It learns from probes. A probe brings one page only, and so do the next faults of its part; which pages
// they want is noted for a while. From their averages follows what each size would have saved and cost: a
// fault that is saved is worth as much as several pages that are brought in vain, because a disk reads a few
// pages in hardly more time than one, while each page in vain drives out another one.
//
// Memory is judged by areas of 64 MiB, because a program's arrays and its tables behave differently; an area
// of which little is known yet is judged by what was learned last, anywhere. Where more than one page comes,
// one fault in sixty-four is a probe, so that a change is noticed, and every second one until enough is
// known. It is plain data without a clock; the pager's lock guards it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "pages/geometry.hpp"

namespace terrace::pages {

/// How much a fault brings.
enum class Bringing { learned, whole, quarter, page };

class Locality {
 public:
  explicit Locality(Bringing bringing = Bringing::learned) : bringing_(bringing) {}

  /// This page is wanted. Returns the pages of its part that should come, this one among them.
  PageMask worth(Address address) {
    if (bringing_ == Bringing::whole) return kAllPages;
    if (bringing_ == Bringing::quarter) return around(address, kPagesOfPart / 4);
    if (bringing_ == Bringing::page) return page_bit(address);
    ++faults_;
    if (const PageMask noted = note(address); noted != 0) return noted;
    const Area& area = area_of(address);
    const Area& known = area.probes < kEnough ? everywhere_ : area;
    const unsigned every = everywhere_.probes < kEnough ? 2 : kProbeEvery;
    const std::size_t size = known.best_size();
    if (size > 1 && faults_ % every != 0) return around(address, size);
    conclude(probe_of_now());
    probe_of_now() = {address, faults_, 0};
    return page_bit(address);
  }

 private:
  static constexpr unsigned kProbeEvery = 64;
  static constexpr unsigned kSure = 7;              // more pages of a part, which is then used as a whole
  static constexpr std::uint32_t kRemembered = 64;  // faults
  static constexpr std::uint8_t kEnough = 8;        // probes
  static constexpr std::array<std::size_t, 3> kSizes{4, 8, 16};
  static constexpr unsigned kOne = 256;
  static constexpr unsigned kPagesOfAFault = 7;  // brought in vain, that cost as much as a fault

  struct Probe {
    Address address = 0;
    std::uint32_t born = 0;
    PageMask more = 0;  ///< other pages of the part that were wanted since
  };
  struct Area {
    /// Of the pages wanted after a probe, those that each size would have brought, in units of 1/256. Until
    /// something is known they are those of a part that is used as a whole.
    std::array<std::uint16_t, kSizes.size()> wanted{kOne, 2 * kOne, 4 * kOne};
    std::uint8_t probes = 0;

    std::size_t best_size() const {
      std::size_t best = 1;
      unsigned most = 0;
      for (std::size_t i = 0; i < kSizes.size(); ++i) {
        const unsigned saved = kPagesOfAFault * wanted[i];
        const auto cost = static_cast<unsigned>((kSizes[i] - 1) * kOne);
        if (saved < cost + most + 1) continue;
        most = saved - cost;
        best = kSizes[i];
      }
      return best;
    }
    void learn(const std::array<unsigned, kSizes.size()>& found) {
      for (std::size_t i = 0; i < kSizes.size(); ++i)
        wanted[i] = static_cast<std::uint16_t>((7 * wanted[i] + found[i] * kOne) / 8);
      if (probes < kEnough) ++probes;
    }
  };

  Area& area_of(Address address) { return areas_[area_number(address)]; }
  Probe& probe_of_now() { return probes_[faults_ % probes_.size()]; }

  /// So many pages of a part, this one in their middle where the part's ends allow it.
  static PageMask around(Address address, std::size_t pages) {
    const std::size_t page = address / kPage % kPagesOfPart, before = (pages - 1) / 2;
    const std::size_t first = std::min(page - std::min(page, before), kPagesOfPart - pages);
    return static_cast<PageMask>(((1U << pages) - 1) << first);
  }
  /// Returns what should come where the part was probed, else 0.
  PageMask note(Address address) {
    PageMask wanted = 0;
    for (Probe& probe : probes_) {
      if (faults_ - probe.born >= kRemembered) conclude(probe);
      if (probe.address == 0 || part_start(probe.address) != part_start(address)) continue;
      probe.more = static_cast<PageMask>(probe.more | without(page_bit(address), page_bit(probe.address)));
      wanted = count_of(probe.more) < kSure ? page_bit(address) : kAllPages;
      if (wanted == kAllPages) conclude(probe);
    }
    return wanted;
  }
  void conclude(Probe& probe) {
    if (probe.address == 0) return;
    std::array<unsigned, kSizes.size()> found{};
    for (std::size_t i = 0; i < kSizes.size(); ++i)
      found[i] = count_of(probe.more) >= kSure
                     ? static_cast<unsigned>(kSizes[i] - 1)
                     : count_of(static_cast<PageMask>(probe.more & around(probe.address, kSizes[i])));
    area_of(probe.address).learn(found);
    everywhere_.learn(found);
    probe = {};
  }

  Bringing bringing_;
  std::array<Area, kAreas> areas_{};
  Area everywhere_;
  std::array<Probe, kRemembered> probes_{};
  std::uint32_t faults_ = 0;
};

}  // namespace terrace::pages
