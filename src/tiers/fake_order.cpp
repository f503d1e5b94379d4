// SPDX-License-Identifier: Apache-2.0
#include "tiers/fake_order.hpp"

#include <algorithm>

namespace terrace {
namespace {

void keep_latest(FakeOrder::Clock& clock, const FakeOrder::Clock& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

bool is_over(const FakeOrder::Mark& mark, const FakeOrder::Clock& clock) {
  return mark.queue < clock.size() && mark.index <= clock[mark.queue];
}

// Takes out what this flag decides. Returns whether there was any.
bool take_out(std::vector<FakeOrder::FlagWait>& waits, FakeOrder::FlagWait raised) {
  return std::erase_if(waits, [&](const FakeOrder::FlagWait& wait) {
           return wait.flag == raised.flag && wait.value <= raised.value;
         }) > 0;
}

}  // namespace

bool overlap(const FakeRange& a, const FakeRange& b) { return a.begin < b.end && b.begin < a.end; }

bool any_overlap(const FakeRanges& some, const FakeRanges& others) {
  return std::any_of(some.begin(), some.end(), [&](const FakeRange& a) {
    return std::any_of(others.begin(), others.end(), [&](const FakeRange& b) { return overlap(a, b); });
  });
}

std::size_t FakeOrder::add_queue() {
  queues_.emplace_back();
  return queues_.size() - 1;
}

std::size_t FakeOrder::add_flag() {
  flags_.emplace_back();
  return flags_.size() - 1;
}

FakeOrder::Mark FakeOrder::issue(std::size_t queue, const std::string& what, const FakeRanges& reads,
                                 const FakeRanges& writes) {
  Past& before = queues_[queue];
  keep_latest(before.clock, host_);
  resolve(before);
  before.clock.resize(std::max(before.clock.size(), queue + 1));
  const Issued here{{queue, before.clock[queue] + 1}, what, reads, writes, before.flags};
  if (!reads.empty() || !writes.empty()) {
    std::erase_if(issued_, [&](const Issued& past) { return is_over(past.mark, host_); });
    for (const Issued& past : issued_) {
      const bool ordered = past.mark.queue == queue || is_over(past.mark, before.clock);
      if (ordered || (!any_overlap(writes, past.writes) && !any_overlap(writes, past.reads) &&
                      !any_overlap(reads, past.writes)))
        continue;
      Doubt doubt{past, here};
      std::erase_if(doubt.first.flags, [&](const FlagWait& wait) { return is_raised(wait); });
      if (doubt.first.flags.empty() && doubt.second.flags.empty()) {
        note_race(past, here);
      } else {
        doubts_.push_back(std::move(doubt));
      }
    }
    issued_.push_back(here);
  }
  before.clock[queue] = here.mark.index;
  return here.mark;
}

const FakeOrder::Past& FakeOrder::past(std::size_t queue) {
  resolve(queues_[queue]);
  return queues_[queue];
}

void FakeOrder::wait(std::size_t queue, const Past& past) {
  Past& mine = queues_[queue];
  keep_latest(mine.clock, past.clock);
  for (const FlagWait& wait : past.flags) {
    if (std::find(mine.flags.begin(), mine.flags.end(), wait) == mine.flags.end()) mine.flags.push_back(wait);
  }
  resolve(mine);
}

void FakeOrder::wait(std::size_t queue, FlagWait flag) { wait(queue, Past{{}, {flag}}); }

// Flags that were raised meanwhile say what comes before.
void FakeOrder::resolve(Past& past) const {
  std::erase_if(past.flags, [&](const FlagWait& wait) {
    if (!is_raised(wait)) return false;
    keep_latest(past.clock, flags_[wait.flag].clock);
    return true;
  });
}

void FakeOrder::raise(FlagWait flag) { raise(flag, Past{host_, {}}); }

void FakeOrder::raise(FlagWait flag, const Past& past) {
  Flag& mine = flags_[flag.flag];
  if (mine.value >= flag.value) return;
  Past known = past;
  resolve(known);
  mine.value = flag.value;
  mine.clock = std::move(known.clock);
  judge(flag, mine.clock);
}

void FakeOrder::judge(FlagWait flag, const Clock& clock) {
  std::erase_if(doubts_, [&](Doubt& doubt) {
    const bool second_waited = take_out(doubt.second.flags, flag);
    const bool first_waited = take_out(doubt.first.flags, flag);
    if (second_waited && is_over(doubt.first.mark, clock)) return true;
    if (first_waited && is_over(doubt.second.mark, clock)) return true;
    if (!doubt.first.flags.empty() || !doubt.second.flags.empty()) return false;
    note_race(doubt.first, doubt.second);
    return true;
  });
}

void FakeOrder::note_race(const Issued& first, const Issued& second) {
  note("nothing puts " + second.what + " behind " + first.what + ", which uses the same bytes");
}

void FakeOrder::seen(const Past& past) {
  Past known = past;
  resolve(known);
  keep_latest(host_, known.clock);
}

}  // namespace terrace
