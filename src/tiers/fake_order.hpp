// SPDX-License-Identifier: Apache-2.0
// FakeOrder: what a fake device's queues, events and flags put in order, and what they leave to chance.
//
// Each queue has a vector clock: how many operations of every queue are known to be over when its next one
// starts. Two operations on the same bytes of which neither is behind the other are a race, noted as a
// sentence. A queue that waits for a flag is behind whatever the host has seen to be over when it raises the
// flag, which is known only then: such pairs are judged when the flag rises. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

/// A stretch of memory, the host's or a device's, that an operation uses.
struct FakeRange {
  std::uint64_t begin = 0, end = 0;
};
using FakeRanges = std::vector<FakeRange>;
bool overlap(const FakeRange& a, const FakeRange& b);
bool any_overlap(const FakeRanges& some, const FakeRanges& others);

class FakeOrder {
 public:
  using Clock = std::vector<std::uint64_t>;  // by queue
  /// Over when so many operations of the queue have run.
  struct Mark {
    std::size_t queue = 0;
    std::uint64_t index = 0;
  };
  /// Over when the flag of that number has come so far.
  struct FlagWait {
    std::size_t flag = 0;
    std::uint32_t value = 0;
    bool operator==(const FlagWait&) const = default;
  };
  /// What comes before something: operations, and flags that are not yet raised.
  struct Past {
    Clock clock;
    std::vector<FlagWait> flags;
  };

  std::size_t add_queue();
  std::size_t add_flag();

  /// Issues the queue's next operation; notes races with those before it.
  Mark issue(std::size_t queue, const std::string& what, const FakeRanges& reads, const FakeRanges& writes);
  /// Returns what comes before the queue's next operation.
  const Past& past(std::size_t queue);
  void wait(std::size_t queue, const Past& past);
  void wait(std::size_t queue, FlagWait flag);

  /// Raised by the host, or by an operation of a queue with that past.
  void raise(FlagWait flag);
  void raise(FlagWait flag, const Past& past);
  bool is_raised(FlagWait flag) const { return flags_[flag.flag].value >= flag.value; }
  std::uint32_t value(std::size_t flag) const { return flags_[flag].value; }

  /// The host knows that everything before this is over.
  void seen(const Past& past);
  void note(std::string violation) { violations_.push_back(std::move(violation)); }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Flag {
    std::uint32_t value = 0;
    Clock clock;
  };
  struct Issued {  // what may still be under way as far as the host knows
    Mark mark;
    std::string what;
    FakeRanges reads, writes;
    std::vector<FlagWait> flags;
  };
  struct Doubt {  // two operations that only a flag can put in order
    Issued first, second;
  };

  void resolve(Past& past) const;
  void judge(FlagWait flag, const Clock& clock);
  void note_race(const Issued& first, const Issued& second);

  std::vector<Past> queues_;
  std::vector<Flag> flags_;
  std::vector<Issued> issued_;
  std::vector<Doubt> doubts_;
  Clock host_;  // what the host has seen to be over
  std::vector<std::string> violations_;
};

}  // namespace terrace
