// SPDX-License-Identifier: Apache-2.0
// Victims decides which resident part leaves next. It is told of every arrival and never touches pages; the
// pager's lock guards it.
//
//   lru          the part that has been resident longest leaves; one that is touched while it waits in
//                staging comes back as the newest, so parts in use stay
//   async-lmp    lru, with the hints that a program gives followed, as CachedArrays' LMP follows them (003):
//   what it
//                wants soon is fetched before, what it does not want soon leaves first
//   first-touch  what came while there was room stays, and later parts share the rest
//   keeper       a histogram of hotness over all parts: the coldest leave first (HM-Keeper, 002 section 8.5).
//                Hotness is the moving average of eq. 8.2 over the faults that a part has caused, and stays
//                with the part while it is on a slower tier. What a long sweep brings leaves before
//                everything else, unless it had been hot; so does what hints say is not wanted soon
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "pages/part_list.hpp"
#include "terrace/result.hpp"

namespace terrace::pages {

/// Why a part, or more of one, became resident.
struct Arrival {
  enum class Why {
    touched,  ///< a thread wanted a page of it that was zero or on a slower tier
    swept,    ///< a sweep wants it, or will
    rescued,  ///< a thread wanted it back while it was on its way out
    stayed,   ///< it could not leave, or was there already: nobody has touched it
  };
  Why why = Why::touched;
  bool crowded = false;            ///< fast memory has been full before
  unsigned pages = 0;              ///< that came
  std::uint64_t limit_pages = ~0;  ///< that may be resident
};

class Victims {
 public:
  virtual ~Victims() = default;

  /// The part became resident. pre: it is in no list
  virtual void arrived(PartId id, const Arrival& arrival) = 0;
  /// More of a resident part came. pre: it is in a list
  virtual void grew(PartId, const Arrival&) {}
  /// The part is no longer resident, or is leaving. pre: it is in a list
  virtual void left(PartId id) = 0;
  /// Returns whether a program's hints count.
  virtual bool follows_hints() const { return false; }
  /// A hint says that the part is not wanted soon. pre: follows_hints(), and it is in a list
  virtual void not_wanted_soon(PartId) {}
  /// Forgets every part: the records' links are about to be made anew.
  virtual void clear() = 0;
  /// Returns who should leave, or kNoPart where nobody is resident.
  virtual PartId next() = 0;
  /// Returns how hot a part is, resident or not, for policies that know.
  virtual unsigned hotness(PartId) const { return 0; }
  /// Says how hot the memory at an address was found by sampling, from 0 to 1, or less than 0 where nobody
  /// knows. Policies that do not ask ignore it.
  using Sampled = std::function<double(Address)>;
  virtual void ask_samples(Sampled) {}
};

/// Fails with a sentence that lists the names.
Result<std::unique_ptr<Victims>> make_victims(std::string_view name, PartTable& table);
std::vector<std::string_view> victim_policies();

}  // namespace terrace::pages
