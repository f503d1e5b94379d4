// SPDX-License-Identifier: Apache-2.0
// A World is everything around a pager, made small enough to visit every state: one part of which two pages
// are used, a thread that reads and writes them, another that gives them up, the kernel's page table and
// messages, the worker that answers faults, the evicting thread, and a disk that may be full.
//
// Each action is one atomic step of one of them. `wrong` holds the first promise that was broken.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "pages/pager.hpp"

namespace terrace::pages {

enum class Action {
  read0,
  write0,
  write1,
  discard0,   // MADV_DONTNEED of page 0: the kernel tells first and zaps afterwards
  zap,        // the second half of discard0
  replace,    // munmap and mmap again: the kernel tells afterwards
  listen,     // the listener takes one message: faults come before changes of the layout
  disk_read,  // the disk has the bytes that a fetch asked for
  deliver,    // the worker fills them in
  lift,       // the evicting thread, step by step
  plan,
  disk_write,
  disk_full,  // instead of disk_write
  conclude,
  fork,    // a child exists from now on: slots are held
  starve,  // the next page that is to be filled finds no memory
  last,
};

class World final : public PageControl, public Store {
 public:
  /// Where a part comes back to, and whether that is memory that gives up what it has given back.
  struct Kind {
    Bringing bringing = Bringing::whole;
    bool packed = false;
  };
  explicit World(Kind kind)
      : packed_(kind.packed),
        table_(kChunk),
        slots_(4),
        victims_(make_victims("lru", table_).value()),
        frames_(kPart, "a frame"),
        data_(kPart, "a buffer"),
        pager_({*this, table_, *victims_, stores_, slot_tables_, {&batch_, 1}}, kPagesOfPart, kind.bringing) {
    batch_.frames = frames_.data();
  }

  /// Returns whether the action was possible.
  bool act(Action action) {
    const bool done = perform(action);
    if (done) look();
    return done;
  }

  std::string wrong;

  /// Lets everything that is under way end, and looks whether the thread that waits gets its page.
  void finish() {
    for (int i = 0; i < 64; ++i) {
      bool moved = false;
      for (const Action action : {Action::zap, Action::listen, Action::disk_read, Action::deliver,
                                  Action::plan, Action::disk_write, Action::conclude})
        moved |= act(action);
      if (!moved && waiting_) moved = act(Action::lift);  // the page waits for room
      if (!moved) break;
    }
    if (waiting_) fail("a thread waits for a page that nobody brings");
  }

  /// Two worlds with equal keys behave alike.
  std::string key() const {
    std::string text;
    const auto add = [&](auto value) { text += std::to_string(static_cast<long long>(value)) + ","; };
    for (std::size_t i = 0; i < 2; ++i) {
      add(present_[i]);
      add(present_[i] ? content_[i] : 0);
      add(protected_[i]);
      add(expected_[i]);
      for (std::uint32_t slot = 0; slot < 4; ++slot) add(slots_.in_use(slot) ? disk_[slot][i] : 0);
      add(batch_.count > 0 ? value(batch_.frame(0), i) : 0);
      add(fetching_ == Fetching::read ? value(data_.at(), i) : 0);
    }
    add(waiting_);
    add(wanted_);
    add(wants_to_write_);
    for (const Event& event : faults_) add(event.kind == Event::Kind::write ? 1 : 2);
    for (const Event& event : changes_) add(event.kind == Event::Kind::removed ? 3 : 4);
    add(discarding_);
    add(fetching_);
    add(evicting_);
    add(forked_);
    add(starving_);
    for (std::uint32_t slot = 0; slot < 4; ++slot) add(slots_.in_use(slot) * 2 + slots_.held(slot));
    const PartId id = table_.find(kStart);
    if (id == kNoPart) return text;
    const Part& part = table_[id];
    add(part.present);
    add(part.stored);
    add(part.slot);
    add(part.state);
    add(part.dirty);
    add(fetch_.pages);
    add(batch_.owner[0]);
    add(batch_.mask[0]);
    add(batch_.waiting[0]);
    add(batch_.dirty[0]);
    add(batch_.slot[0]);
    add(batch_.cause[0]);
    return text;
  }

  // PageControl
  PagesDone fill(Address part, PageMask pages, const std::byte* from, Protection protection) override {
    if (change_pending()) return {0, true};
    if ((pages & 3) != 0 && std::exchange(starving_, false)) return {0, false, true};
    PageMask existed = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      if (present_[i]) existed = static_cast<PageMask>(existed | (pages & 1U << i));
      if (!(pages >> i & 1) || present_[i]) continue;
      present_[i] = true;
      content_[i] = value(from, i);
      protected_[i] = protection == Protection::read_only;
    }
    (void)part;
    return {pages, false, false, existed};
  }
  PagesDone take(Address, PageMask pages, std::byte* frame) override {
    if (change_pending()) return {0, true};
    PageMask absent = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!(pages >> i & 1)) continue;
      if (!present_[i]) absent = static_cast<PageMask>(absent | 1U << i);
      frame[i * kPage] = static_cast<std::byte>(content_[i]);
      present_[i] = protected_[i] = false;
    }
    return {static_cast<PageMask>(pages & ~absent), false, false, 0, absent};
  }
  PagesDone put_back(Address, PageMask pages, std::byte* frame) override {
    if (change_pending()) return {0, true};
    PageMask existed = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!(pages >> i & 1)) continue;
      if (present_[i]) {
        existed = static_cast<PageMask>(existed | 1U << i);
        continue;
      }
      if (evicting_ > Evicting::lifted) fail("a frame is read by the disk, and its page is moved away");
      present_[i] = true;
      content_[i] = value(frame, i);
      protected_[i] = false;
      frame[i * kPage] = static_cast<std::byte>(kForgotten);
    }
    return {pages, false, false, existed};
  }
  bool unprotect(Address, PageMask pages) override {
    if (change_pending()) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      if (pages >> i & 1) protected_[i] = false;
    }
    waiting_ = false;
    return true;
  }
  void wake(Address) override { waiting_ = false; }
  void poison(Address, PageMask) override { fail("nothing is lost on a disk that reads"); }

  // Store
  const std::string& name() const noexcept override { return nothing_; }
  const std::string& path() const noexcept override { return nothing_; }
  std::uint32_t slots() const noexcept override { return 4; }
  int read(std::uint64_t, std::byte*, std::size_t) noexcept override { return 0; }
  int write(std::uint64_t, std::span<const iovec>) noexcept override { return 0; }
  bool is_memory() const noexcept override { return packed_; }
  void forget(std::uint64_t offset, std::size_t bytes) noexcept override {
    for (std::size_t page = offset % kPart / kPage; packed_ && page < 2 && bytes > 0; ++page, bytes -= kPage)
      disk_[offset / kPart][page] = kForgotten;
  }

 private:
  static constexpr int kForgotten = 77;  // whoever reads it reads wrong bytes

  enum class Fetching { no, asked, read };
  enum class Evicting { no, lifted, planned, written };
  struct Buffer : Reserved<std::byte> {
    using Reserved<std::byte>::Reserved;
    const std::byte* at() const { return &(*this)[0]; }
  };

  static constexpr Address kStart = kChunk * 1024;

  static int value(const std::byte* part, std::size_t page) { return static_cast<int>(part[page * kPage]); }
  void fail(const char* what) {
    if (wrong.empty()) wrong = what;
  }
  bool change_pending() const { return !changes_.empty(); }

  void look() {
    if (const char* found = pager_.check_records(); *found != '\0') fail(found);
    for (std::size_t i = 0; i < 2; ++i) {
      const bool about_to_be_zapped = i == 0 && discarding_;
      if (present_[i] && !about_to_be_zapped && content_[i] != expected_[i])
        fail("the program reads wrong bytes");
    }
  }

  bool access(std::size_t page, bool write) {
    if (waiting_) return false;
    // Whoever writes what another thread is discarding may find either afterwards: that is no case to judge.
    if (page == 0 && write && discarding_) return false;
    if (!present_[page] || (write && protected_[page])) {
      waiting_ = true;
      wanted_ = page;
      wants_to_write_ = write;
      const auto kind = present_[page] ? Event::Kind::write : Event::Kind::missing;
      faults_.push_back({kind, kStart + page * kPage, 0, 0, write});
      return true;
    }
    if (!write) return false;  // look() has compared it
    expected_[page] = expected_[page] % 2 + 1;
    content_[page] = expected_[page];
    return true;
  }

  bool listen() {
    if (!faults_.empty() && fetching_ == Fetching::no) {
      const Event event = faults_.front();
      Fetch fetch;
      const bool starved = starving_;
      const Pager::Step step = pager_.fault(event, fetch);
      if (step == Pager::Step::done || step == Pager::Step::fetch) faults_.pop_front();
      if (step == Pager::Step::fetch) {
        fetch_ = fetch;
        fetching_ = Fetching::asked;
      }
      if (step == Pager::Step::done || step == Pager::Step::fetch || starving_ != starved) return true;
    }
    if (changes_.empty()) return false;
    const Event event = changes_.front();
    changes_.pop_front();
    pager_.changed(event);
    return true;
  }

  bool lift() {
    if (evicting_ != Evicting::no || pager_.lift(batch_) != Pager::Step::done) return false;
    evicting_ = Evicting::lifted;
    return true;
  }

  bool write_disk(int cause) {
    if (evicting_ != Evicting::planned) return false;
    const Slot slot = batch_.slot[0];
    if (slot == kNoSlot && cause != 0) return false;
    for (std::size_t i = 0; slot != kNoSlot && cause == 0 && i < 2; ++i) {
      if (slots_.held(index_of(slot))) fail("a forked child's slot is written");
      if (batch_.mask[0] >> i & 1) disk_[index_of(slot)][i] = value(batch_.frame(0), i);
    }
    if (cause != 0) batch_.cause[0] = cause;
    evicting_ = Evicting::written;
    return true;
  }

  bool conclude() {
    if (evicting_ != Evicting::written || pager_.written(batch_, 0) == Pager::Step::again) return false;
    pager_.released(batch_);
    evicting_ = Evicting::no;
    return true;
  }

  bool perform(Action action) {
    switch (action) {
      case Action::read0:
        return access(0, false);
      case Action::write0:
        return access(0, true);
      case Action::write1:
        return access(1, true);
      case Action::discard0:
        if (discarding_ || change_pending()) return false;
        changes_.push_back({Event::Kind::removed, kStart, 0, kPage});
        return discarding_ = true;
      case Action::zap:
        if (!discarding_ || change_pending()) return false;
        discarding_ = present_[0] = protected_[0] = false;
        expected_[0] = 0;
        return true;
      case Action::replace:
        if (discarding_ || change_pending()) return false;
        changes_.push_back({Event::Kind::unmapped, kStart, 0, kPart});
        present_ = {};
        protected_ = {};
        expected_ = {};
        return true;
      case Action::listen:
        return listen();
      case Action::disk_read:
        if (fetching_ != Fetching::asked) return false;
        for (std::size_t i = 0; i < 2; ++i)
          data_[i * kPage] = static_cast<std::byte>(disk_[index_of(fetch_.slot)][i]);
        fetching_ = Fetching::read;
        return true;
      case Action::deliver:
        if (fetching_ != Fetching::read || pager_.fetched(fetch_, data_.data(), 0) == Pager::Step::again)
          return false;
        fetching_ = Fetching::no;
        return true;
      case Action::lift:
        return lift();
      case Action::plan:
        if (evicting_ != Evicting::lifted) return false;
        Pager::begin_leaving(batch_);
        pager_.plan(batch_);
        evicting_ = Evicting::planned;
        return true;
      case Action::disk_write:
        return write_disk(0);
      case Action::disk_full:
        return write_disk(28);
      case Action::conclude:
        return conclude();
      case Action::fork:
        // Writes have ended when a process forks (Service::pause).
        if (forked_ || evicting_ > Evicting::lifted) return false;
        pager_.hold_slots();
        pager_.stop_holding();
        return forked_ = true;
      case Action::starve:
        return !std::exchange(starving_, true);
      case Action::last:
        break;
    }
    return false;
  }

  std::string nothing_;
  bool packed_;
  PartTable table_;
  SlotTable slots_;
  std::unique_ptr<Victims> victims_;
  Reserved<std::byte> frames_;
  Buffer data_;
  Batch batch_;
  std::vector<Store*> stores_{this};
  std::vector<SlotTable*> slot_tables_{&slots_};
  Pager pager_;
  Fetch fetch_;
  std::array<bool, 2> present_{}, protected_{};
  std::array<int, 2> content_{}, expected_{};
  std::array<std::array<int, 2>, 4> disk_{};
  std::deque<Event> faults_, changes_;
  bool waiting_ = false, wants_to_write_ = false, discarding_ = false, forked_ = false, starving_ = false;
  std::size_t wanted_ = 0;
  Fetching fetching_ = Fetching::no;
  Evicting evicting_ = Evicting::no;
};

}  // namespace terrace::pages
