// SPDX-License-Identifier: Apache-2.0
// The service runs a pager: threads that answer faults, and one that makes room before it is needed.
//
// Of the workers one listens. It answers at once what needs no reading. Where the kernel reads without a
// thread that waits (read_ring.hpp) it starts a read and listens on, so that faults of several threads
// overlap and nobody is handed over to. Otherwise it passes the ear on to an idle worker and reads on its
// own; with the last worker the fault waits in a queue instead.
//
// Where it runs inside somebody else's program all of its memory is its own: stacks, tables and buffers are
// mappings that the program does not know. Its threads take no signals.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pages/pager.hpp"
#include "pages/read_ring.hpp"
#include "pages/room_reserve.hpp"
#include "pages/userfault.hpp"
#include "pages/wakeful.hpp"

namespace terrace::pages {

struct ServiceOptions {
  std::size_t fast_bytes = 0;  ///< the most that may be resident
  std::size_t most_bytes = 0;  ///< the most that may ever be managed
  std::string policy = "keeper";
  unsigned workers = 4;  ///< at least 2; one fewer can read at once
  /// The policy `keeper` finds out what is hot by samples: the share of the time that this may take, for how
  /// long an interval lasts, and whether it does so even where everything fits. 0: no samples.
  double overhead = 0.05;
  double interval_seconds = 1;
  bool sample_always = false;
  bool log_faults = false;                ///< for take_faults()
  Bringing bringing = Bringing::learned;  ///< other values are for measurements
  bool use_ring = true;                   ///< false: as where the kernel has no io_uring
  Ownership ownership = Ownership::ours;
  Userfault::Leaving leaving = Userfault::Leaving::best;
  /// Called about every 5 ms by the evicting thread without the lock, and every millisecond while it returns
  /// true; empty: never.
  std::function<bool()> tick;
  /// Another process's, which outlives the service; else it has a thread for one.
  Wakeful* wakeful = nullptr;
  /// Called once when pages were lost, by a worker, before whoever touches them is ended.
  std::function<void(const std::string& sentence)> lost;
};

struct ServiceStatistics {
  PagerCounts counts;
  std::uint64_t resident_pages = 0, limit_pages = 0, used_slots = 0;
  std::uint64_t waiting_ns = 0;                     ///< time between a fault's message and its answer, summed
  std::uint64_t longest_ns = 0;                     ///< the longest of them
  std::uint64_t room_waits = 0;                     ///< faults that had to wait for an eviction
  std::uint64_t read_bytes = 0, written_bytes = 0;  ///< of disks and other slower tiers
  std::uint64_t unpacked_faults = 0;                ///< fetches from compressed memory
  std::uint64_t unpacked_bytes = 0, packed_bytes = 0;
  std::uint64_t packed_memory = 0;  ///< that compressed pages take now
  std::uint64_t rescue_ns = 0;      ///< those of the waits that ended with a part that had not left yet
  std::uint64_t samples = 0;        ///< parts that were taken out to see whether they are in use
  std::uint64_t sampled_hot = 0;    ///< those that were
  /// What that took: work, and the waiting of those who wanted them back.
  std::uint64_t sampling_ns = 0;
  std::uint64_t intervals = 0, stretches = 0;
  double largest_overhead = 0;        ///< the largest share of an interval that it took
  bool cornered = false;              ///< slower tiers are full
  std::uint64_t overdue_address = 0;  ///< a fault that nobody has answered for a second, or 0
};

class Service {
 public:
  /// Fails with one sentence where userfaultfd is refused or the policy unknown. Throws EnvironmentError
  /// where memory or threads are refused.
  static Result<std::unique_ptr<Service>> start(std::vector<std::unique_ptr<Store>> stores,
                                                ServiceOptions options);
  Service(const Service&) = delete;
  ~Service();

  const Userfault& userfault() const { return userfault_; }
  /// Manages this range from now on. Returns 0 or an errno. Takes no lock.
  int manage(Address start, std::size_t bytes) { return userfault_.manage(start, bytes); }
  /// Tells what the kernel shows of a range that was in use before it was managed, or of one that a forked
  /// child has to manage again.
  enum class Finder { layout, child };
  void found_present(Address part, PageMask pages, Finder finder = Finder::layout);
  /// Ranges that the program unmapped or moved since this was called last: what is at the same place now is
  /// not managed. Returns their number; where they were too many the last one is everything.
  using GoneRanges = std::array<Range, 64>;
  std::size_t take_gone(GoneRanges& to);
  /// The program says when it wants a range. A policy that follows hints has it fetched where there is room,
  /// or lets it leave first.
  enum class Hint { wanted_soon, not_wanted_soon };
  void hint(Address start, std::size_t bytes, Hint hint);
  /// Gives up a range of memory of ours: it reads as zeros afterwards.
  void discard(Address start, std::size_t bytes);
  ServiceStatistics statistics();
  std::uint64_t resident_bytes();
  /// The faults since this was called last (access_log.hpp). One thread calls it. pre: log_faults
  std::span<Address> take_faults();
  /// Returns a sentence about the first page that was lost; empty where none was.
  std::string loss();

  /// Returns how hot the memory at an address was found to be, from 0 to 1; less than 0 where nobody knows.
  double hotness(Address address);

  /// Calls `visit(descriptor)` for every open file that the service depends on.
  void each_descriptor(const std::function<void(int)>& visit) const;

  /// What may be resident from now on.
  void set_limit(std::size_t bytes);
  /// What stores in memory may take of it together.
  void set_room_of_memory_stores(std::size_t bytes);

  // A fork copies the service's memory, and no thread of it. The process that forks calls the first of these
  // before, the second afterwards in the parent, and the others in the child, which is to manage its memory
  // again (manage(), found_present()) after the first of them. Without a store of its own a child keeps
  // everything resident.
  //
  // It calls pause() before all of them: from then on nothing is evicted and no tick runs, so that what it
  // touches stays resident. One thread at a time is past it. Faults are answered all the while, because a
  // fork waits for locks of the C library, and whoever holds one of them may wait for a page.
  void pause();
  void before_fork();
  void after_fork_in_parent();
  Result<void> reopen_in_child();
  void restart_in_child();
  void open_store_in_child();
  /// No child that was forked is left: what was stored for it may be overwritten.
  void let_slots_go();

  /// Returns the first contradiction in the records; empty where there is none. For tests.
  std::string check_records();

 private:
  struct Pending {
    Event event;
    std::uint64_t since_ns = 0;
    bool counted = false;  ///< as one that waited for room
  };
  /// A fetch whose reads are under way in the ring.
  struct Flight {
    Fetch fetch;
    Pending fault;
    std::unique_ptr<Reserved<std::byte>> buffer;
    Address end = 0;      ///< behind what it brings
    unsigned pieces = 0;  ///< reads that have not ended
    bool failed = false;
    bool holds = false;             ///< it has landed and waits for a touch of its first part
    bool busy = false;              ///< it is in none of the lists of free ones
    std::size_t touched_bytes = 0;  ///< of its buffer
    unsigned idle_ticks = 0;        ///< since it was used last
  };
  struct Thread {
    pthread_t handle{};
    std::unique_ptr<Reserved<std::byte>> stack, buffer;
    Service* service = nullptr;
    enum class Role { works, evicts, stays_awake } role = Role::works;
    std::uint64_t busy_since_ns = 0;  ///< guarded by the service's lock
    Address busy_with = 0;
  };

  Service(std::vector<std::unique_ptr<Store>> stores, ServiceOptions options, Userfault userfault);
  Result<void> prepare();
  void start_threads();
  void start_thread(Thread::Role role);
  static void* run_thread(void* thread);

  void work(Thread& me);
  bool next_fault(Thread& me, Pending& fault, std::unique_lock<std::mutex>& lock);
  bool listen(Pending& fault, std::unique_lock<std::mutex>& lock);
  void wait_for_news(std::uint64_t last_event_ns, bool delayed);
  void lock_soon(std::unique_lock<std::mutex>& lock);
  void give_way(std::unique_lock<std::mutex>& lock);
  bool answer_or_pass_on(const Pending& fault, Pending& mine, std::unique_lock<std::mutex>& lock);
  void retry_delayed(std::unique_lock<std::mutex>& lock);
  void let_an_event_be_read(std::unique_lock<std::mutex>& lock);
  void answered(const Pending& fault);
  void serve(Thread& me, const Pending& fault, std::unique_lock<std::mutex>& lock);
  void read_and_fill(Thread& me, Fetch& fetch, std::unique_lock<std::mutex>& lock);
  Pager::Step fill_in(Fetch& fetch, const std::byte* data, int cause, std::unique_lock<std::mutex>& lock);
  void promote(Thread& me, std::unique_lock<std::mutex>& lock);
  PageMask read_for(const Fetch& fetch) const;
  int read(const Fetch& fetch, std::byte* to);
  void tell_loss(const Fetch& fetch, int cause);
  void delay(Pending fault, Pager::Step step);

  // Reads in the ring (service_flight.cpp).
  void prepare_flights();
  bool can_take_off(Slot slot);
  void take_off(const Fetch& fetch, const Pending& fault, std::unique_lock<std::mutex>& lock);
  void read_on(Address end, std::unique_lock<std::mutex>& lock);
  bool goes_on(PartId id, const Pending& fault, std::unique_lock<std::mutex>& lock);
  void stop_holding();
  void ground(std::uint16_t number);
  void give_idle_buffers_back();
  void depart(std::uint16_t number, std::unique_lock<std::mutex>& lock);
  void start_reads(std::uint16_t number);
  void land(std::unique_lock<std::mutex>& lock);
  void arrive(std::uint16_t number, std::unique_lock<std::mutex>& lock);

  void evict();
  bool tick(std::unique_lock<std::mutex>& lock);
  bool needs_room() const;
  std::uint64_t waiting_pages() const;
  bool fill_batch(Batch& batch, std::unique_lock<std::mutex>& lock);
  void empty_oldest(std::unique_lock<std::mutex>& lock);
  bool settle(Batch& batch, std::unique_lock<std::mutex>& lock);
  bool has_lower_store(Slot slot) const { return slot != kNoSlot && tier_of(slot) + 1 < store_views_.size(); }
  Store& store_of(Slot slot) const { return *store_views_[tier_of(slot)]; }
  std::size_t frames_at_once() const;
  void write(Batch& batch, std::size_t at_once);
  void write_run(Batch& batch, std::span<const std::uint8_t> frames);
  void demote(std::unique_lock<std::mutex>& lock);
  void room_was_made();
  void nothing_can_leave();
  // The evicting thread's sampler (service_sample.cpp).
  struct Sampling;
  bool wants_samples() const;
  std::uint64_t nanoseconds_of_a_fault() const;
  void sample(std::unique_lock<std::mutex>& lock);
  void end_scan(std::unique_lock<std::mutex>& lock);
  void spend(std::uint64_t nanoseconds);
  void begin_samples();
  void learn_chunks();
  void arm_samples(std::unique_lock<std::mutex>& lock);
  void check_samples();
  void return_samples(std::unique_lock<std::mutex>& lock);
  void end_samples();
  void promote_hot();

  void take(const Event& event);
  void note_gone(const Event& event);
  void kick();

  ServiceOptions options_;
  std::vector<std::unique_ptr<Store>> stores_;
  std::vector<Store*> store_views_;
  std::vector<std::unique_ptr<SlotTable>> slots_;
  std::vector<SlotTable*> slot_views_;
  Userfault userfault_;
  PartTable table_;
  std::unique_ptr<Victims> victims_;
  std::unique_ptr<Reserved<std::byte>> staging_;
  std::vector<Batch> batches_;
  std::unique_ptr<Reserved<std::byte>> demotion_buffer_;  // where there is more than one slower tier
  std::unique_ptr<AccessLog> log_;
  std::unique_ptr<Pager> pager_;
  std::size_t parts_of_batch_ = kPartsOfChunk;
  RoomReserve reserve_{0, 0};

  std::mutex mutex_;  // guards all below, the pager, the table, the slots and the batches
  std::condition_variable idle_, room_, quiet_;
  std::deque<Pending> queue_;       // faults that need reading, for the next free worker
  std::deque<Pending> delayed_;     // faults to try again: an event has to be read, or room to be made
  std::deque<Address> promotions_;  // parts to fetch while nobody waits for anything
  std::deque<std::uint16_t> lifted_, free_;  // batches
  std::unique_ptr<ReadRing> ring_;           // none: workers read
  std::vector<Flight> flights_;
  std::vector<std::uint16_t> grounded_;   // flights that are free, the last one used last
  std::vector<std::uint16_t> held_;       // flights that hold, the oldest first
  std::atomic<bool> fault_waits_{false};  // the listener wants the lock
  unsigned idle_workers_ = 0;
  bool listening_ = false, stopping_ = false, paused_ = false, evicting_ = false, told_ = false;
  bool promoting_ = false;
  ServiceStatistics totals_;
  bool forked_ = false;  // pages may be shared with another process
  std::uint64_t demoted_at_refusal_ = ~std::uint64_t{0};
  std::size_t fruitless_ = 0;  // parts that could not be lifted, one after the other
  bool held_up_ = false;       // the last part could not be lifted before an event is read
  GoneRanges gone_{};
  std::size_t gone_count_ = 0;
  std::string loss_;
  std::unique_ptr<Sampling> sampling_;  // none: the policy does not ask
  std::optional<Wakeful> own_wakeful_;
  Wakeful* wakeful_ = nullptr;  // none: workers read, or there is one processor
  int kick_ = -1;               // an eventfd that ends the listener's poll
  std::deque<Thread> threads_;
};

}  // namespace terrace::pages
