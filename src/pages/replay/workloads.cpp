// SPDX-License-Identifier: Apache-2.0
// Workloads with the sizes, the shares of writes and the shapes of 002 Table 8.2. The programs themselves
// cannot be run here, and the paper prints no traces: which memory is hot is made up, by the numbers below.
#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "base/similar.hpp"
#include "pages/replay/trace.hpp"

namespace terrace::pages {
namespace {

constexpr Bytes kWorkloadBlock{2U << 20};
// What eight threads do in ten seconds at about 350 ns an access.
constexpr double kAccessesOfWindow = 230e6;

/// The shape of a workload. Shares are of all accesses of a window.
struct Recipe {
  std::string_view name, what;
  double gigabytes;
  double writes;         ///< share of accesses that write
  double hot_blocks;     ///< share of the memory that is hot
  double hot_share;      ///< accesses to it
  double skew;           ///< of Zipf's law within the hot blocks; 0: all alike
  double run;            ///< length of runs of hot blocks, in blocks
  double drift;          ///< share of the hot runs that change places with each window
  double sweep_share;    ///< accesses that go through all memory in order
  double sweep_windows;  ///< windows that one sweep takes
};

constexpr Recipe kRecipes[] = {
    {"gups", "updates of random places, 90% in a fixed fifth of the memory", 512, 0.5, 0.2, 0.9, 0, 300, 0, 0,
     1},
    {"voltdb", "TPC-C in an in-memory database, 300 GB", 300, 0.5, 0.15, 0.8, 0.8, 60, 0.005, 0.05, 40},
    {"cassandra", "YCSB-A in a row store, 400 GB", 400, 0.5, 0.2, 0.7, 0.99, 20, 0.005, 0.1, 60},
    {"bfs", "breadth-first search in a random graph, 525 GB", 525, 0, 0.05, 0.55, 0, 500, 0.002, 0.35, 25},
    {"sssp", "shortest paths in a random graph, 525 GB", 525, 0, 0.06, 0.6, 0, 500, 0.002, 0.3, 25},
    {"spark", "TeraSort, 350 GB", 350, 0.5, 0.1, 0.5, 0.3, 200, 0.02, 0.4, 30},
};

class Workload final : public AccessTrace {
 public:
  Workload(const Recipe& recipe, std::uint32_t windows, Bytes size) : recipe_(recipe) {
    shape_.name = recipe.name;
    shape_.block = kWorkloadBlock;
    const double bytes = size.count > 0 ? static_cast<double>(size.count) : recipe.gigabytes * 1e9;
    shape_.blocks =
        static_cast<std::uint32_t>(std::max(bytes / static_cast<double>(kWorkloadBlock.count), 64.0));
    shape_.windows = windows;
    draw_hot_runs();
    if (recipe_.drift == 0) {
      hot_.resize(shape_.blocks);
      for (std::size_t run = 0; run < starts_.size(); ++run) {
        for (std::uint32_t i = 0; i < run_length(); ++i) hot_[(starts_[run] + i) % shape_.blocks] = true;
      }
    }
  }

  const TraceShape& shape() const override { return shape_; }
  const std::vector<bool>* hot_set() const override { return hot_.empty() ? nullptr : &hot_; }

  void window(std::uint32_t window, std::span<Accesses> into) const override {
    const double rest = 1 - recipe_.hot_share - recipe_.sweep_share;
    const double per_block = kAccessesOfWindow / shape_.blocks;
    std::fill(into.begin(), into.end(), both(rest * per_block));
    add_hot(window, into);
    add_sweep(window, into);
  }

 private:
  std::uint32_t run_length() const {
    return static_cast<std::uint32_t>(std::clamp(recipe_.run, 1.0, shape_.blocks / 16.0));
  }
  Accesses both(double all) const {
    return {static_cast<float>(all * (1 - recipe_.writes)), static_cast<float>(all * recipe_.writes)};
  }
  static void add(Accesses& to, const Accesses& more) {
    to.reads += more.reads;
    to.writes += more.writes;
  }

  void draw_hot_runs() {
    SplitMix random(shape_.blocks);
    const auto count =
        std::max<std::size_t>(static_cast<std::size_t>(recipe_.hot_blocks * shape_.blocks / run_length()), 1);
    // One run somewhere in each of equal pieces, so that they do not overlap.
    const std::uint32_t piece = shape_.blocks / static_cast<std::uint32_t>(count);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t free = piece > run_length() ? piece - run_length() : 1;
      starts_.push_back(static_cast<std::uint32_t>(i) * piece +
                        static_cast<std::uint32_t>(random.below(free)));
      weights_.push_back(1 / std::pow(static_cast<double>(i + 1), recipe_.skew));
      sum += weights_.back();
    }
    for (double& weight : weights_) weight /= sum;
    // Which run is the hottest has nothing to do with when it was touched first.
    for (std::size_t i = count; i > 1; --i) std::swap(weights_[i - 1], weights_[random.below(i)]);
  }

  void add_hot(std::uint32_t window, std::span<Accesses> into) const {
    for (std::size_t run = 0; run < starts_.size(); ++run) {
      // A run moves once in 1 / drift windows, each at its own time.
      const auto moves = static_cast<std::uint64_t>(recipe_.drift * window +
                                                    static_cast<double>(run % 97) / 97 * (recipe_.drift > 0));
      const std::uint64_t start = starts_[run] + moves * (shape_.blocks / 3 + 7 * run_length());
      const Accesses each = both(kAccessesOfWindow * recipe_.hot_share * weights_[run] / run_length());
      for (std::uint32_t i = 0; i < run_length(); ++i) add(into[(start + i) % shape_.blocks], each);
    }
  }

  void add_sweep(std::uint32_t window, std::span<Accesses> into) const {
    if (recipe_.sweep_share == 0) return;
    const double length = shape_.blocks / recipe_.sweep_windows;
    const auto first = static_cast<std::uint64_t>(window * length);
    const auto count = static_cast<std::uint64_t>(std::max(length, 1.0));
    const Accesses each = both(kAccessesOfWindow * recipe_.sweep_share / static_cast<double>(count));
    for (std::uint64_t i = 0; i < count; ++i) add(into[(first + i) % shape_.blocks], each);
  }

  Recipe recipe_;
  TraceShape shape_;
  std::vector<std::uint32_t> starts_;
  std::vector<double> weights_;
  std::vector<bool> hot_;
};

}  // namespace

std::vector<WorkloadInfo> trace_workloads() {
  std::vector<WorkloadInfo> all;
  for (const Recipe& recipe : kRecipes) all.push_back({recipe.name, recipe.what});
  return all;
}

Result<std::unique_ptr<AccessTrace>> make_workload(std::string_view name, std::uint32_t windows, Bytes size) {
  std::vector<std::string_view> names;
  for (const Recipe& recipe : kRecipes) {
    if (recipe.name == name)
      return std::unique_ptr<AccessTrace>(std::make_unique<Workload>(recipe, windows, size));
    names.push_back(recipe.name);
  }
  return Error{ErrorCode::invalid_argument,
               "there is no workload '" + std::string(name) + "': choose " + enumerated(names, "or")};
}

}  // namespace terrace::pages
