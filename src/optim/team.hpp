// SPDX-License-Identifier: Apache-2.0
// Work of one solver on two threads, if it may have two.
//
// What is shared is cut in the same places whatever the threads and however busy they are, and sums of parts
// are added in the same order: results do not tell how many threads there were.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <system_error>
#include <vector>

namespace terrace::optim {

/// One thread may call this, and none of the threads that it starts.
class Team {
 public:
  explicit Team(unsigned threads) : is_free_(threads > 1) {}

  /// Side by side where the second thread has nothing else to do, else one after the other.
  template <class Here, class There>
  void both(const Here& here, const There& there) {
    std::future<void> other;
    if (is_free_.exchange(false)) other = start([&] { there(), is_free_ = true; });
    if (!other.valid()) there();
    here();
    if (other.valid()) other.get();
  }

  /// `work(half, first, end)` for what is before the middle and for the rest, if there is one.
  template <class Index, class Work>
  void halves(Index middle, Index end, const Work& work) {
    if (middle == end) return work(0U, Index{0}, end);
    both([&] { work(0U, Index{0}, middle); }, [&] { work(1U, middle, end); });
  }

  /// The sum of `value(i)` over all places of an array.
  template <class Value>
  double sum(std::size_t size, const Value& value) {
    std::array<double, 2> sums{};
    halves(middle(size), size, [&](unsigned half, std::size_t first, std::size_t end) {
      double sum = 0;
      for (std::size_t i = first; i < end; ++i) sum += value(i);
      sums[half] = sum;
    });
    return sums[0] + sums[1];
  }
  /// `work(i)` for all places of an array.
  template <class Work>
  void each(std::size_t size, const Work& work) {
    halves(middle(size), size, [&](unsigned, std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) work(i);
    });
  }

  /// The middle of so much work: its end where a thread would take as long to begin as it saves.
  static std::size_t middle(std::size_t size) { return size < kLeast ? size : size / 2; }
  /// Returns where to cut tensors or kernels in two, by how many edges or configurations are before each.
  template <class Item>
  static std::uint32_t middle(const std::vector<Item>& items, std::size_t size) {
    const auto is_before = [half = middle(size)](const Item& item) { return item.first < half; };
    return static_cast<std::uint32_t>(std::partition_point(items.begin(), items.end(), is_before) -
                                      items.begin());
  }

 private:
  /// Below so many edges, configurations or multipliers (some hundred microseconds) nothing is cut.
  static constexpr std::size_t kLeast = 50'000;

  /// None where there is no thread to be had; then none is asked for again.
  template <class Work>
  static std::future<void> start(const Work& work) {
    try {
      return std::async(std::launch::async, work);
    } catch (const std::system_error&) {
      return {};
    }
  }

  std::atomic<bool> is_free_;
};

}  // namespace terrace::optim
