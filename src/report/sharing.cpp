#include "report/sharing.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "plan/packing.hpp"

namespace terrace {
namespace {

constexpr Bytes kLine{64};
constexpr std::uint64_t kPage = kSmall.count;

/// FirstFit allocates from unlimited memory by first fit, with the holes ordered by offset.
class FirstFit {
 public:
  std::uint64_t take(Bytes size) {
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      const auto [offset, room] = *hole;
      if (room < size.count) continue;
      holes_.erase(hole);
      if (room > size.count) holes_[offset + size.count] = room - size.count;
      return offset;
    }
    return std::exchange(end_, end_ + size.count);
  }
  void give_back(std::uint64_t offset, Bytes size) {
    auto next = holes_.insert({offset, size.count}).first;
    if (next != holes_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += next->second;
        holes_.erase(next);
        next = before;
      }
    }
    const auto after = std::next(next);
    if (after != holes_.end() && next->first + next->second == after->first) {
      next->second += after->second;
      holes_.erase(after);
    }
  }

 private:
  std::map<std::uint64_t, std::uint64_t> holes_;
  std::uint64_t end_ = 0;
};

Bytes room_for(const TensorFacts& tensor) { return round_up(std::max(tensor.bytes, Bytes{1}), kLine); }

std::vector<std::size_t> numbers(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

std::vector<std::uint64_t> in_allocation_order(std::span<const TensorFacts> facts) {
  std::vector<std::size_t> order = numbers(facts.size());
  // Tensors that outlive the step were allocated before it.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(facts[a].first, facts[a].layers > 0) < std::tuple(facts[b].first, facts[b].layers > 0);
  });
  std::vector<std::uint64_t> offsets(facts.size());
  std::multimap<std::uint32_t, std::size_t> live;  // by the last kernel
  FirstFit memory;
  for (const std::size_t i : order) {
    for (auto dead = live.begin(); dead != live.end() && dead->first < facts[i].first;
         dead = live.erase(dead))
      memory.give_back(offsets[dead->second], room_for(facts[dead->second]));
    offsets[i] = memory.take(room_for(facts[i]));
    live.emplace(facts[i].last, i);
  }
  return offsets;
}

auto group_of(const TensorFacts& tensor) { return std::tie(tensor.used_in, tensor.layers); }

/// Sorts tensors so that groups are contiguous and ordered by accesses within.
bool goes_before(const TensorFacts& a, const TensorFacts& b) {
  return std::tuple_cat(group_of(a), std::tie(a.accesses, a.first)) <
         std::tuple_cat(group_of(b), std::tie(b.accesses, b.first));
}

std::vector<std::uint64_t> in_groups(std::span<const TensorFacts> facts) {
  std::vector<std::size_t> order = numbers(facts.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return goes_before(facts[a], facts[b]); });
  std::vector<std::uint64_t> offsets(facts.size());
  std::vector<std::size_t> group_number(facts.size());
  std::vector<PackingItem> groups;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const TensorFacts& tensor = facts[order[place]];
    if (place == 0 || group_of(facts[order[place - 1]]) != group_of(tensor))
      groups.push_back({{}, tensor.first, tensor.last});
    PackingItem& group = groups.back();
    group_number[order[place]] = groups.size() - 1;
    offsets[order[place]] = group.size.count;
    group.size += room_for(tensor);
    group.first = std::min(group.first, tensor.first);
    group.last = std::max(group.last, tensor.last);
  }
  const Packing packing = pack_in_time_order(groups, kSmall, live_bytes_bound(groups, kSmall));
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] += packing.offsets[group_number[i]];
  return offsets;
}

struct PageRange {
  std::uint64_t first, last;  ///< both included
};

PageRange pages_of(const TensorFacts& tensor, std::uint64_t offset) {
  return {offset / kPage, (offset + std::max<std::uint64_t>(tensor.bytes.count, 1) - 1) / kPage};
}

/// Counts pages by the accesses of all tensors in them; that sum changes only where a tensor begins or ends.
void add_page_accesses(Sharing& result, std::span<const TensorFacts> facts,
                       std::span<const std::uint64_t> offsets) {
  struct Change {
    std::int64_t tensors = 0;
    double accesses = 0;
  };
  std::map<std::uint64_t, Change> changes;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const PageRange range = pages_of(facts[i], offsets[i]);
    changes[range.first].tensors += 1;
    changes[range.first].accesses += facts[i].accesses;
    changes[range.last + 1].tensors -= 1;
    changes[range.last + 1].accesses -= facts[i].accesses;
  }
  Change now;
  for (auto change = changes.begin(); change != changes.end(); ++change) {
    now.tensors += change->second.tensors;
    now.accesses += change->second.accesses;
    if (now.tensors == 0) continue;
    const std::uint64_t pages = std::next(change)->first - change->first;
    result.pages += pages;
    result.by_page_accesses[access_bucket(now.accesses)] += Bytes{pages * kPage};
  }
}

bool live_together(const TensorFacts& a, const TensorFacts& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// Compares the tensors that begin or end in one page with each other.
void add_page(Sharing& result, std::span<const TensorFacts> facts, std::span<const std::size_t> tensors,
              std::vector<bool>& is_falsely) {
  bool shared = false, accesses = false, lifetimes = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const TensorFacts &a = facts[tensors[i]], &b = facts[tensors[j]];
      if (!live_together(a, b)) continue;
      shared = true;
      const bool unlike = access_bucket(a.accesses) != access_bucket(b.accesses);
      const bool other = lifetime_bucket(a.layers) != lifetime_bucket(b.layers);
      accesses = accesses || unlike;
      lifetimes = lifetimes || other;
      if (unlike || other) is_falsely[tensors[i]] = is_falsely[tensors[j]] = true;
    }
  }
  result.shared += shared ? 1 : 0;
  result.unlike_accesses += accesses ? 1 : 0;
  result.unlike_lifetimes += lifetimes ? 1 : 0;
  result.falsely_shared += accesses || lifetimes ? 1 : 0;
}

}  // namespace

std::vector<std::uint64_t> lay_out(std::span<const TensorFacts> facts, Layout layout) {
  return layout == Layout::grouped ? in_groups(facts) : in_allocation_order(facts);
}

Sharing sharing(std::span<const TensorFacts> facts, std::span<const std::uint64_t> offsets) {
  Sharing result;
  result.by_page_accesses.resize(by_accesses({}).size());
  add_page_accesses(result, facts, offsets);
  // A page can hold two tensors only where one of them begins or ends.
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> borders;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const PageRange range = pages_of(facts[i], offsets[i]);
    borders[range.first].push_back(i);
    if (range.last != range.first) borders[range.last].push_back(i);
  }
  std::vector<bool> is_falsely(facts.size());
  for (const auto& [page, tensors] : borders) add_page(result, facts, tensors, is_falsely);
  result.tensors = static_cast<std::size_t>(std::count(is_falsely.begin(), is_falsely.end(), true));
  return result;
}

}  // namespace terrace
