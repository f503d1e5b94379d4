// SPDX-License-Identifier: Apache-2.0
// The pager is the state machine behind paged memory: what a fault, an eviction or a change of the program's
// layout does to the parts concerned.
//
// Every function is one atomic step. The caller holds one lock around it and does the reading and writing
// between steps, with the lock released (service.hpp). So the states between steps are all there are, and
// tests/pages visits every one of them that a small memory can reach.
//
//   fault -> fetch .. fetched        a page that a slower tier holds
//   lift .. plan .. written          an eviction: until `written` a touched page comes back at once
//
// It allocates nothing and throws nothing but std::logic_error for a bug.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pages/access_log.hpp"
#include "pages/first_writes.hpp"
#include "pages/locality.hpp"
#include "pages/page_control.hpp"
#include "pages/part_table.hpp"
#include "pages/slots.hpp"
#include "pages/store.hpp"
#include "pages/victims.hpp"

namespace terrace::pages {

/// What has happened so far. Amounts are in pages unless the name says otherwise.
struct PagerCounts {
  std::uint64_t faults = 0;          ///< all of the below
  std::uint64_t zero_faults = 0;     ///< first touches
  std::uint64_t write_faults = 0;    ///< first writes to a part that was clean
  std::uint64_t fetch_faults = 0;    ///< a slower tier was read
  std::uint64_t rescues = 0;         ///< the part was still in staging
  std::uint64_t fetched = 0;         ///< pages read, those read ahead included
  std::uint64_t promoted = 0;        ///< pages of them that were hot, before somebody asked
  std::uint64_t read_ahead = 0;      ///< pages of them that nobody had asked for yet
  std::uint64_t came = 0;            ///< pages that became resident because somebody wanted them, or will
  std::uint64_t evicted_clean = 0;   ///< pages dropped because a slower tier has them
  std::uint64_t evicted_dirty = 0;   ///< pages written
  std::uint64_t evicted_zero = 0;    ///< pages dropped because they were zeros
  std::uint64_t demoted = 0;         ///< pages that moved to a lower one of the slower tiers
  std::uint64_t dropped = 0;         ///< pages that the program gave up
  std::uint64_t stuck = 0;           ///< parts that the kernel would not move
  std::uint64_t kept_for_space = 0;  ///< parts kept because no slower tier had room or took them
  std::uint64_t lost = 0;            ///< pages whose tier could not be read
};

/// Why a page was lost.
struct Loss {
  int cause = 0;
  unsigned tier = 0;
  std::uint64_t offset = 0;
  Address address = 0;
};

/// One read of a slower tier: parts that neighbour each other in the program and in the tier.
struct Fetch {
  std::array<PartId, kPartsOfChunk> parts{};
  std::uint32_t count = 0;
  Slot slot = kNoSlot;  ///< the first part's
  PageMask pages = 0;   ///< the first part's; the others are whole
  /// Pages that come writable: the one that a thread waits to write, or all of all parts.
  PageMask written = 0;
  bool wanted_is_filled = false;  ///< the first part has been settled
  bool swept = false;             ///< it goes on where several others ended
  bool ahead = false;             ///< nobody waits for it: its first part stays out until somebody does
};

/// Pages that the kernel would not move.
struct Stuck {
  Address part = 0;
  PageMask pages = 0;
};

/// A part on its way from one slower tier to a lower one.
struct Demotion {
  PartId part = kNoPart;
  Slot from = kNoSlot, to = kNoSlot;
};

/// Frames that are lifted, written and emptied together.
struct Batch {
  std::byte* frames = nullptr;  ///< room for all of them
  std::uint16_t number = 0;
  std::uint16_t count = 0;
  std::uint32_t pages = 0;  ///< pages that its frames hold
  bool leaving = false;     ///< its frames are looked at or written: what comes back is copied
  bool samples = false;  ///< they are taken out only to see whether somebody wants them: whole or not at all
  std::array<PartId, kPartsOfChunk> owner{};
  std::array<PageMask, kPartsOfChunk> mask{};     ///< pages that were lifted; after plan: those to be written
  std::array<PageMask, kPartsOfChunk> waiting{};  ///< pages that were lifted and that nobody has brought back
  std::array<PageMask, kPartsOfChunk> dirty{};    ///< lifted pages that may differ from the owner's slot
  std::array<Slot, kPartsOfChunk> slot{};
  std::array<bool, kPartsOfChunk> joined{};  ///< the slot is its owner's already and has other pages
  std::array<bool, kPartsOfChunk> zero{};    ///< set by the caller between lift and plan
  std::array<int, kPartsOfChunk> cause{};    ///< set by the caller between plan and written

  std::byte* frame(std::size_t i) const { return frames + i * kPart; }
};

/// Streams notice faults that follow each other, up to eight rows of them at once, and say how many parts to
/// serve with the next one: twice as many as before.
class Streams {
 public:
  explicit Streams(std::uint32_t most) : most_(most) {}

  std::uint32_t window(Address address) {
    for (Stream& stream : streams_) {
      if (stream.next == address) return std::min(2 * stream.window, most_);
    }
    return 1;
  }
  /// Returns whether a row of faults has come to this address.
  bool follows(Address address) const {
    return std::any_of(streams_.begin(), streams_.end(),
                       [&](const Stream& stream) { return stream.next == address; });
  }
  /// Parts were served up to `next`.
  void served(Address address, Address next, std::uint32_t window) {
    for (Stream& stream : streams_) {
      if (stream.next != address) continue;
      stream = {next, window};
      return;
    }
    streams_[oldest_++ % streams_.size()] = {next, window};
  }

 private:
  struct Stream {
    Address next = 0;
    std::uint32_t window = 1;
  };
  std::uint32_t most_;
  std::array<Stream, 8> streams_{};
  std::size_t oldest_ = 0;
};

class Pager {
 public:
  struct Parts {  ///< what it works on; all outlive it
    PageControl& control;
    PartTable& table;
    Victims& victims;
    const std::vector<Store*>& stores;
    const std::vector<SlotTable*>& slots;
    std::span<Batch> batches;
    AccessLog* log = nullptr;  ///< where every fault is noted, if anywhere
  };
  Pager(const Parts& parts, std::uint64_t limit_pages, Bringing bringing = Bringing::learned);

  enum class Step {
    done,
    again,  ///< an event must be read first; lift: or somebody else is busy with the part
    fetch,  ///< read what `fetch` names, then call fetched()
    full,   ///< no room: try again after an eviction
    none,   ///< lift: nobody can leave
    held,   ///< fetched: all but the first part of a fetch ahead is there
  };

  Step fault(const Event& event, Fetch& fetch);
  /// Returns whether a fault has to read a slower tier, if there is room.
  bool reads(PartId id, const Event& event) const;
  /// Brings a part before somebody touches it. Returns `fetch`, or `none` where that is not possible now.
  Step promote(Address part, Fetch& fetch);
  /// Begins to fetch what a sweep that has come to `start` will want next. All of it but the first part is
  /// filled in; a touch of that one tells that the sweep goes on. Returns `fetch`, or `none` where there is
  /// no such sweep or nothing to fetch.
  Step read_ahead(Address start, Fetch& fetch);
  /// Nobody has touched the first part of a fetch ahead: it stays on its slower tier.
  void forget(Fetch& fetch);
  /// Returns the address behind the parts of a fetch that has just begun.
  Address end_of(const Fetch& fetch) const { return table_.address(fetch.parts[0]) + fetch.count * kPart; }
  /// `data` holds the fetched parts one behind the other; `cause` is 0 or the errno of the read. Returns
  /// `fetch` where less is to be read again.
  Step fetched(Fetch& fetch, const std::byte* data, int cause);

  /// The program unmapped, discarded or moved a range.
  void changed(const Event& event);
  /// These pages of a part are in the program already, as the kernel says.
  void found_present(Address part, PageMask pages);

  /// Takes one part out of the program. pre: batch.count < kPartsOfChunk
  Step lift(Batch& batch);
  /// Takes this part out, to see whether somebody wants it back. pre: can_be_sampled(id)
  Step lift(Batch& batch, PartId id);
  bool can_be_sampled(PartId id) const;
  /// Returns whether nothing of it is in fast memory.
  bool is_away(PartId id) const { return table_[id].present == 0 && !is_lifted(table_[id]); }
  /// Puts frame `i` back where nobody wanted it meanwhile. Returns `again`, `done`, or `full` where the
  /// system has no memory for it: then it has to leave.
  Step return_sample(Batch& batch, std::size_t i);
  /// Returns what stopped the last lift(), once.
  Stuck take_stuck() { return std::exchange(stuck_, {}); }
  /// Decides for each frame that still has an owner; those with a slot afterwards are to be written.
  void plan(Batch& batch);
  /// Concludes frame `i`.
  Step written(Batch& batch, std::size_t i);
  /// From here on the caller reads the frames without the lock.
  static void begin_leaving(Batch& batch) { batch.leaving = true; }
  /// What was taken out as a sample leaves after all.
  void evict_samples(Batch& batch);
  /// The frames' memory was given back.
  void released(Batch& batch);

  /// Chooses a cold part of a slower tier that is to move to the next lower one with room (002
  /// section 8.5.2). The caller copies its slot and calls demoted() with 0 or an errno. Returns false where
  /// there is none.
  bool begin_demotion(unsigned tier, Demotion& demotion);
  void demoted(const Demotion& demotion, int cause);

  /// A child is about to be forked, which reads the slots as they are then; it has been; no child is left.
  void hold_slots();
  void stop_holding();
  void let_slots_go();

  /// This is a forked child with a copy of everything, made at any moment of a step, though of none of an
  /// eviction. Only slots and frames are taken from the records: what is present is told by found_in_child(),
  /// as the kernel shows it. No page is write-protected any more. It counts from zero.
  void go_on_in_child();
  void found_in_child(Address part, PageMask pages);

  void set_limit(std::uint64_t pages);
  /// So many pages are in use elsewhere, until somebody who knows of them calls set_limit().
  void take_off_limit(std::uint64_t pages) { limit_ -= std::min(pages, limit_ / 4); }
  /// Where slower tiers have no room left nothing waits for an eviction.
  void set_cornered(bool cornered) { cornered_ = cornered; }
  bool cornered() const { return cornered_; }
  std::uint64_t resident() const { return resident_; }
  /// Pages that fetches are about to bring.
  std::uint64_t coming() const { return coming_; }
  /// Pages of the resident ones that are on their way out.
  std::uint64_t staged() const { return staged_; }
  std::uint64_t limit() const { return limit_; }
  const PagerCounts& counts() const { return counts_; }
  const Loss& loss() const { return loss_; }

  /// Returns an empty string, or the first contradiction found between the records. For tests.
  const char* check_records() const;

 private:
  Step fault_missing(PartId id, const Event& event, Fetch& fetch);
  Step fault_lifted(PartId id, const Event& event, Fetch& fetch);
  Step move_back(PartId id, PageMask& pages, Arrival::Why why);
  Step bring_back(PartId id, PageMask pages, Arrival::Why why);
  Step bring_all_back(PartId id, Arrival::Why why);
  Step fill_zeros(PartId id, const Event& event);
  void begin_fetch(PartId id, PageMask pages, const Event& event, Fetch& fetch);
  Step open_for_writing(PartId id, Address address);
  Step fill_part_with_zeros(PartId id, PageMask pages);
  Step make_do_with_less();
  bool can_read_ahead(PartId id, Slot slot) const;
  Step lose(Fetch& fetch, int cause);
  void settle_fetched(PartId id, PageMask filled, PageMask writable, Arrival::Why why);

  void drop(Address start, Address end);
  void drop_pages(PartId id, PageMask pages);
  void detach_frame(Part& part);
  void leave_slot_to_frame(Part& part);
  void remap(Address from, Address to, std::size_t bytes);
  bool move_whole_part(Address from, Address to);
  bool keep_in_slot(Part& part, PageMask pages, const std::byte* data);
  void move_pages(Address to_part, Address to, Address end, Address from);

  bool in_frame(PartId id) const;
  static bool is_lifted(const Part& part) {
    return part.state == PartState::lifted || part.state == PartState::writing;
  }
  Batch& batch_of(const Part& part) const { return at_.batches[part.frame / kPartsOfChunk]; }
  static std::size_t frame_of(const Part& part) { return part.frame % kPartsOfChunk; }
  PageMask waiting(const Part& part) const;
  void add_resident(PartId id, PageMask pages, Arrival::Why why);
  void remove_resident(PartId id, PageMask pages);
  void give_back(Slot slot);
  void forget_pages(PartId id, PageMask pages);
  void free_slot(Part& part);
  Slot take_slot(std::uint32_t wanted, std::uint32_t& got, unsigned first_tier = 0);
  bool joins_slot(const Part& part) const;
  static bool is_clean(const Part& part) { return (part.present & to_write(part)) == 0; }
  /// Pages that the slot does not hold as they are.
  static PageMask to_write(const Part& part) { return static_cast<PageMask>(part.dirty | ~part.stored); }
  bool is_held(const Part& part) const;
  bool can_leave(const Part& part) const;
  bool colder(PartId a, PartId b) const;
  void stay(PartId id);
  void leave_unwritten(Batch& batch, std::size_t i);
  Step put_back(Batch& batch, std::size_t i);
  bool has_room(std::uint64_t pages) const { return cornered_ || resident_ + coming_ + pages <= limit_; }
  static unsigned pages_of(const Fetch& fetch, std::uint32_t part) {
    return part == 0 ? count_of(fetch.pages) : kPagesOfPart;
  }

  Parts at_;
  PartTable& table_;
  std::uint64_t limit_, resident_ = 0, staged_ = 0;
  std::uint64_t coming_ = 0;                   // pages of fetches that are under way
  std::uint64_t ceiling_ = ~std::uint64_t{0};  // of the limit, since the system refused memory
  bool crowded_ = false, cornered_ = false;
  static constexpr std::uint32_t kSweep = 8;  // parts at once: a row of at least four faults
  Streams reads_, first_touches_{16}, first_writes_{8};
  Locality fetched_locality_, touched_locality_, rescued_locality_, opened_locality_;
  FirstWrites written_;
  PartId demotion_hand_ = kNoPart;  // where the last one was found
  PagerCounts counts_;
  Loss loss_;
  Stuck stuck_;
  Reserved<std::byte> scratch_;  // one part of zeros, and one to rearrange pages in
};

}  // namespace terrace::pages
