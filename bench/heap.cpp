// Claim: the heap carves a tier for a training run faster than mimalloc serves the same requests, and wastes
// almost nothing doing so.
//
// The contenders replay the same traces in turn, in one process; no contender's bytes are touched. The
// measure is the processor time of this thread, which other programs on the machine disturb least.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "report.hpp"
#include "terrace/heap.hpp"
#include "traces/random.hpp"
#include "traces/trace.hpp"

#ifdef TERRACE_HAS_MIMALLOC
#include <mimalloc.h>

namespace terrace::bench {
namespace {

class Ours {
 public:
  explicit Ours(const Trace& trace, Bytes capacity) : heap_(capacity, {64}), slots_(trace.ids) {}
  void allocate(std::uint32_t id, std::uint64_t bytes) {
    auto slot = heap_.allocate({bytes});
    if (!slot) {
      compact();
      slot = heap_.allocate({bytes});
    }
    slots_[id] = slot.value();
  }
  void free(std::uint32_t id) { heap_.free(slots_[id]); }
  std::uint64_t address(std::uint32_t id) const { return heap_.offset(slots_[id]); }
  const Heap& heap() const { return heap_; }
  std::uint64_t compactions() const { return compactions_; }
  std::uint64_t moved() const { return moved_; }

 private:
  void compact() {
    ++compactions_;
    heap_.compact([&](Slot, std::uint64_t, std::uint64_t, Bytes size) { return moved_ += size.count, true; });
  }

  Heap heap_;
  std::vector<Slot> slots_;
  std::uint64_t compactions_ = 0, moved_ = 0;
};

class Mimalloc {
 public:
  explicit Mimalloc(const Trace& trace) : blocks_(trace.ids) {}
  void allocate(std::uint32_t id, std::uint64_t bytes) { blocks_[id] = mi_malloc(bytes); }
  void free(std::uint32_t id) { mi_free(blocks_[id]); }
  std::uint64_t address(std::uint32_t id) const { return reinterpret_cast<std::uint64_t>(blocks_[id]); }

 private:
  std::vector<void*> blocks_;
};

template <class Contender>
void replay(const Trace& trace, Contender& contender) {
  for (const auto& [id, bytes] : trace.events) {
    if (bytes > 0) {
      contender.allocate(id, bytes);
    } else {
      contender.free(id);
    }
  }
}

// Replays a trace and checks that no two live blocks overlap.
template <class Contender>
void check_answer(const Trace& trace, Contender& contender) {
  std::map<std::uint64_t, std::uint64_t> live;  // begin -> end
  for (const auto& [id, bytes] : trace.events) {
    if (bytes == 0) {
      live.erase(contender.address(id));
      contender.free(id);
      continue;
    }
    contender.allocate(id, bytes);
    const std::uint64_t begin = contender.address(id);
    const auto above = live.lower_bound(begin);
    const bool clear = (above == live.end() || begin + bytes <= above->first) &&
                       (above == live.begin() || std::prev(above)->second <= begin);
    if (!clear) throw std::logic_error("two live blocks overlap in " + trace.name);
    live.emplace_hint(above, begin, begin + bytes);
  }
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Returns events per second, measured over at least this much time.
template <class Contender>
double speed(const Trace& trace, Contender& contender, double seconds) {
  const double start = processor_seconds();
  double spent = 0, events = 0;
  do {
    replay(trace, contender);
    events += static_cast<double>(trace.events.size());
    spent = processor_seconds() - start;
  } while (spent < seconds);
  return events / spent;
}

struct Speeds {
  std::vector<double> ours, mimalloc, ratios;
};

Speeds race(const Trace& trace, int rounds, double seconds) {
  Ours ours(trace, Bytes{4 * peak_live(trace) / 64 * 64});
  Mimalloc mimalloc(trace);
  replay(trace, ours);
  replay(trace, mimalloc);
  Speeds speeds;
  for (int round = 0; round < rounds; ++round) {
    speeds.ours.push_back(speed(trace, ours, seconds));
    speeds.mimalloc.push_back(speed(trace, mimalloc, seconds));
    speeds.ratios.push_back(speeds.ours.back() / speeds.mimalloc.back());
  }
  return speeds;
}

// Measures how much more than the live bytes the trace needs: with ample room, and with 5% more than the
// peak, where the heap is compacted when it is full.
nlohmann::json measure_footprint(const Trace& trace) {
  const std::uint64_t peak = peak_live(trace);
  Ours roomy(trace, Bytes{4 * peak / 64 * 64});
  check_answer(trace, roomy);
  Ours tight(trace, round_up(Bytes{peak + peak / 20}, {64}));
  replay(trace, tight);
  for (const Ours* ours : {&roomy, &tight}) ours->heap().validate().value();
  const auto footprint = static_cast<double>(roomy.heap().statistics().footprint.count);
  return {{"peak_live_bytes", peak},
          {"footprint_over_live", footprint / static_cast<double>(peak)},
          {"compactions_at_1.05", tight.compactions()},
          {"moved_bytes_at_1.05", tight.moved()}};
}

nlohmann::json measure(const Trace& trace, int rounds, double seconds) {
  nlohmann::json row = measure_footprint(trace);
  Mimalloc checked(trace);
  check_answer(trace, checked);
  const Speeds speeds = race(trace, rounds, seconds);
  const auto [least, most] = std::minmax_element(speeds.ratios.begin(), speeds.ratios.end());
  row["trace"] = trace.name;
  row["events"] = trace.events.size();
  row["ours_per_second"] = median(speeds.ours);
  row["mimalloc_per_second"] = median(speeds.mimalloc);
  row["ratio"] = median(speeds.ratios);
  row["spread"] = {*least, *most};
  fmt::print("{}\n  ours {:.1f}, mimalloc {:.1f} million events/s; ratio {:.2f} ({:.2f}..{:.2f})\n",
             trace.name, median(speeds.ours) / 1e6, median(speeds.mimalloc) / 1e6, median(speeds.ratios),
             *least, *most);
  fmt::print("  footprint {:.3f} of peak live {}; in 1.05 of it: {} compactions, {} moved\n",
             row["footprint_over_live"].get<double>(), readable(Bytes{row["peak_live_bytes"]}),
             row["compactions_at_1.05"].get<int>(), readable(Bytes{row["moved_bytes_at_1.05"]}));
  return row;
}

int run(int count, char** words) {
  Trace training = read_trace(TERRACE_TRACES "/resnet50-b32.txt");
  bool quick = false;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--quick") {
      quick = true;
    } else if (word == "--trace" && i + 1 < count) {
      training = read_trace(words[++i]);
    } else {
      throw std::runtime_error("usage: bench_heap [--quick] [--trace FILE]");
    }
  }
  const int rounds = quick ? 11 : 31;
  const double seconds = quick ? 0.05 : 0.2;
  nlohmann::json rows;
  for (const Trace& trace : {training, random_large(1), random_small(1)})
    rows.push_back(measure(trace, rounds, seconds));
  print_result(
      "the heap serves a training trace faster than mimalloc, in at most 1.05 of the bytes that are alive",
      "ratio >= 1 on the training trace; footprint_over_live <= 1.05", rows[0]["ratio"], rows[0]["spread"],
      {{"rounds", rounds}, {"traces", rows}});
  return 0;
}

}  // namespace
}  // namespace terrace::bench

int main(int count, char** words) {
  try {
    return terrace::bench::run(count, words);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_heap: {}\n", error.what());
    return 1;
  }
}

#else

int main() {
  fmt::print(stderr, "bench_heap: mimalloc was not found when this was built: install libmimalloc-dev\n");
  return 1;
}

#endif
