// SPDX-License-Identifier: Apache-2.0
// Victims decides which resident part leaves next. It is told of every arrival and never touches pages; the
// pager's lock guards it.
//
//   lru          the part that has been resident longest leaves; one that is touched while it waits in
//                staging comes back as the newest, so parts in use stay
//   first-touch  what came while there was room stays, and later parts share the rest
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "pages/part_list.hpp"
#include "terrace/result.hpp"

namespace terrace::pages {

class Victims {
 public:
  virtual ~Victims() = default;

  /// The part became resident. `crowded`: fast memory has been full before. pre: it is in no list
  virtual void arrived(PartId id, bool crowded) = 0;
  /// The part is no longer resident, or is leaving. pre: it is in a list
  virtual void left(PartId id) = 0;
  /// Forgets every part: the records' links are about to be made anew.
  virtual void clear() = 0;
  /// Returns who should leave, or kNoPart where nobody is resident.
  virtual PartId next() const = 0;
};

/// Fails with a sentence that lists the names.
Result<std::unique_ptr<Victims>> make_victims(std::string_view name, PartTable& table);
std::vector<std::string_view> victim_policies();

}  // namespace terrace::pages
