#include "data/buckets.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "base/check.hpp"

namespace terrace {
namespace {

/// A dynamic program over the distinct lengths in ascending order finds the least padding of the first n of
/// them in a given number of buckets. The optimal last bucket of n begins no later than that of n + 1,
/// because the padding of a bucket grows faster the earlier it begins; divide and conquer therefore finds all
/// beginnings in n log n.
class Search {
 public:
  explicit Search(const std::map<std::int64_t, std::int64_t>& counted) : many_(1), sums_(1) {
    for (const auto& [length, count] : counted) {
      lengths_.push_back(length);
      many_.push_back(many_.back() + count);
      sums_.push_back(sums_.back() + count * length);
    }
  }

  std::vector<std::int64_t> best(std::size_t most) {
    const std::size_t buckets = std::min(most, lengths_.size());
    least_.assign(lengths_.size() + 1, kNone);
    least_[0] = 0;
    for (std::size_t i = 0; i < buckets; ++i) add_bucket();
    return cuts();
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  /// Returns the padding of one bucket that holds lengths `first` to `end` - 1.
  std::int64_t padding(std::size_t first, std::size_t end) const {
    return lengths_[end - 1] * (many_[end] - many_[first]) - (sums_[end] - sums_[first]);
  }

  void add_bucket() {
    next_.assign(least_.size(), kNone);
    begins_.emplace_back(least_.size());
    fill(1, lengths_.size(), 0, lengths_.size() - 1);
    least_ = next_;
  }

  /// Solves for all ends from `low` to `high`, whose last buckets begin between `from` and `to`.
  void fill(std::size_t low, std::size_t high, std::size_t from, std::size_t to) {
    if (low > high) return;
    const std::size_t end = low + (high - low) / 2;
    std::size_t best = from;
    for (std::size_t first = from; first <= std::min(to, end - 1); ++first) {
      if (least_[first] == kNone) continue;
      const std::int64_t all = least_[first] + padding(first, end);
      if (all >= next_[end]) continue;
      next_[end] = all;
      best = first;
    }
    begins_.back()[end] = best;
    fill(low, end - 1, from, best);
    fill(end + 1, high, best, to);
  }

  std::vector<std::int64_t> cuts() const {
    std::vector<std::int64_t> found(begins_.size());
    std::size_t end = lengths_.size();
    for (std::size_t i = begins_.size(); i-- > 0; end = begins_[i][end]) found[i] = lengths_[end - 1];
    return found;
  }

  std::vector<std::int64_t> lengths_;      // the distinct lengths
  std::vector<std::int64_t> many_, sums_;  // counts and sums of the first n
  std::vector<std::int64_t> least_, next_;
  std::vector<std::vector<std::size_t>> begins_;  // where the bucket begins, by bucket and end
};

}  // namespace

std::vector<std::int64_t> choose_buckets(std::span<const std::int64_t> lengths, std::size_t most) {
  check(!lengths.empty() && most > 0, "there are lengths and buckets for them");
  std::map<std::int64_t, std::int64_t> counted;
  for (const std::int64_t length : lengths) {
    check(length > 0, "a length is above zero");
    ++counted[length];
  }
  return Search(counted).best(most);
}

std::size_t bucket_of(std::span<const std::int64_t> buckets, std::int64_t length) {
  const auto found = std::lower_bound(buckets.begin(), buckets.end(), length);
  check(found != buckets.end(), "the largest bucket holds every length");
  return static_cast<std::size_t>(found - buckets.begin());
}

}  // namespace terrace
