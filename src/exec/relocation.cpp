#include "exec/relocation.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/check.hpp"
#include "exec/initialise.hpp"

namespace terrace {
namespace {

bool same_address(TierAddress a, TierAddress b) { return a.tier == b.tier && a.offset == b.offset; }

bool is_among(std::span<const TierAddress> all, TierAddress address) {
  return std::any_of(all.begin(), all.end(), [&](TierAddress one) { return same_address(one, address); });
}

/// The largest stretch of the fastest tier that holds nothing persistent of either side.
std::span<std::byte> spare(std::initializer_list<Relocation::Side> sides, const OpenTiers& tiers) {
  if (!tiers.is_open({0})) return {};
  Tier& tier = tiers[TierId{0}];
  std::vector<std::pair<std::uint64_t, std::uint64_t>> used{{tier.description().capacity.count, 0}};
  for (const Relocation::Side& side : sides) {
    for (std::uint32_t i = 0; i < side.graph.tensors.size(); ++i) {
      if (!side.graph.tensors[i].persistent) continue;
      for (const TierAddress address : side.store.addresses({i})) {
        if (address.tier == TierId{0})
          used.emplace_back(address.offset, address.offset + side.graph.tensors[i].bytes.count);
      }
    }
  }
  std::sort(used.begin(), used.end());
  std::span<std::byte> largest;
  std::uint64_t end = 0;
  for (const auto& [first, last] : used) {
    if (first > end && first - end > largest.size()) largest = {tier.memory() + end, first - end};
    end = std::max(end, round_up(Bytes{last}, Bytes{64}).count);
  }
  return largest;
}

}  // namespace

Relocation::Relocation(Side from, Side to, const OpenTiers& tiers)
    : from_(from), to_(to), tiers_(tiers), memory_(spare({from, to}, tiers)) {
  const std::vector<WholeTensor> lying = whole_tensors(from.graph);
  std::unordered_map<std::string_view, const WholeTensor*> named;
  for (const WholeTensor& whole : lying) named[whole.name] = &whole;
  for (const WholeTensor& whole : whole_tensors(to.graph)) {
    if (is_constant(to.graph[whole.parts.front()])) continue;
    const auto found = named.find(whole.name);
    check(found != named.end(), "both graphs have the tensor");
    add(*found->second, whole);
  }
  left_ = items_.size();
  find_blockers();
}

void Relocation::add(const WholeTensor& from, const WholeTensor& to) {
  const bool same_parts =
      std::equal(from.parts.begin(), from.parts.end(), to.parts.begin(), to.parts.end(),
                 [this](TensorId a, TensorId b) { return from_.graph[a].shape == to_.graph[b].shape; });
  if (!same_parts) return add(from.parts, to.parts);
  for (std::size_t i = 0; i < from.parts.size(); ++i)
    add(std::vector{from.parts[i]}, std::vector{to.parts[i]});
}

void Relocation::add(std::vector<TensorId> from, std::vector<TensorId> to) {
  Item item;
  item.same_bytes =
      from.size() == 1 && to.size() == 1 && from_.graph[from.front()].layout == to_.graph[to.front()].layout;
  for (const TensorId part : from) {
    const auto addresses = from_.store.addresses(part);
    check(!addresses.empty(), "the plan keeps the tensor between steps");
    item.sources.push_back({part, addresses.front()});
  }
  for (const TensorId part : to) {
    for (const TierAddress address : to_.store.addresses(part)) {
      const bool there = item.same_bytes && is_among(from_.store.addresses(from.front()), address);
      if (!there) item.destinations.push_back({part, address});
      if (there) item.sources.front().address = address;  // where nothing else will be written
    }
  }
  item.to = std::move(to);
  if (!item.destinations.empty()) items_.push_back(std::move(item));
}

void Relocation::find_blockers() {
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    for (std::uint32_t j = 0; j < items_.size(); ++j) {
      if (i == j || !goes_over(items_[j], items_[i])) continue;
      items_[i].blocks.push_back(j);
      ++items_[j].blockers;
    }
  }
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    if (items_[i].blockers == 0) ready_.push_back(i);
  }
}

Bytes Relocation::touched(TierAddress address, Bytes bytes) const {
  return tiers_.at(address) != nullptr ? bytes
                                       : round_up(bytes, tiers_[address.tier].description().granularity);
}

Bytes Relocation::size(const Item& item) const {
  Bytes sum{0};
  for (const Region& source : item.sources) sum += from_.graph[source.tensor].bytes;
  return sum;
}

bool Relocation::goes_over(const Item& item, const Item& other) const {
  return std::any_of(other.sources.begin(), other.sources.end(), [&](const Region& lies) {
    return goes_to(item, lies.address, touched(lies.address, from_.graph[lies.tensor].bytes));
  });
}

bool Relocation::goes_to(const Item& item, TierAddress address, Bytes size) const {
  return std::any_of(item.destinations.begin(), item.destinations.end(), [&](const Region& to) {
    const std::uint64_t end = to.address.offset + touched(to.address, to_.graph[to.tensor].bytes).count;
    return to.address.tier == address.tier && to.address.offset < address.offset + size.count &&
           address.offset < end;
  });
}

void Relocation::run() {
  while (left_ > 0) {
    if (ready_.empty()) {
      hold_smallest();
      continue;
    }
    const std::uint32_t next = ready_.back();
    put(items_[next]);
    ready_.pop_back();
    release(items_[next]);
    --left_;
  }
  initialise_constants(to_.graph, to_.store);
}

/// How much memory an item needs while it waits: for the value as it is to be stored, and before that for the
/// largest part that is on a disk.
Bytes Relocation::room_for(const Item& item) const {
  Bytes sum{0}, largest{0};
  for (const TensorId part : item.to) sum += to_.graph[part].bytes;
  for (const Region& source : item.sources) {
    if (tiers_.at(source.address) == nullptr) largest = std::max(largest, from_.graph[source.tensor].bytes);
  }
  return std::max(sum, largest);
}

/// Parts on disks are read into the item's room, one after the other.
void Relocation::read_rows(const Item& item, std::span<std::byte> rows) const {
  for (const Region& source : item.sources) {
    const Tensor& part = from_.graph[source.tensor];
    const std::byte* stored = tiers_.at(source.address);
    if (stored == nullptr) {
      const std::span<std::byte> room = item.value.bytes().first(part.bytes.count);
      tiers_.read(source.address, room);
      stored = room.data();
    }
    from_.store.backend().to_row_major(from_.graph, source.tensor, stored, rows.data());
    rows = rows.subspan(row_major_bytes(part).count);
  }
}

/// Cuts an item anew: reads all its rows from the parts that it has, and stores them in those that it is to
/// have.
void Relocation::cut(const Item& item) {
  std::size_t all = 0;
  for (const Region& source : item.sources) all += row_major_bytes(from_.graph[source.tensor]).count;
  const CopyMemory::Room room = memory_.take(Bytes{all});
  read_rows(item, room.bytes());
  std::span<const std::byte> rows = room.bytes();
  std::span<std::byte> value = item.value.bytes();
  std::fill(value.begin(), value.end(), std::byte{0});  // as the padding of a layout is
  for (const TensorId part : item.to) {
    to_.store.backend().from_row_major(to_.graph, part, rows.data(), value.data());
    rows = rows.subspan(row_major_bytes(to_.graph[part]).count);
    value = value.subspan(to_.graph[part].bytes.count);
  }
}

void Relocation::take(Item& item) {
  if (item.value.bytes().empty()) item.value = memory_.take(room_for(item));  // else reading failed before
  if (item.same_bytes) {
    tiers_.read(item.sources.front().address, item.value.bytes().first(size(item).count));
  } else {
    cut(item);
  }
  item.taken = true;
}

void Relocation::put(Item& item) {
  const TierAddress source = item.sources.front().address;
  std::byte* memory = tiers_.at(source);
  const bool in_place = !item.taken && memory != nullptr && item.same_bytes && !goes_over(item, item);
  if (!in_place && !item.taken) take(item);
  std::span<const std::byte> value = in_place ? std::span<const std::byte>(memory, size(item).count)
                                              : std::span<const std::byte>(item.value.bytes());
  for (const TensorId part : item.to) {
    const std::size_t bytes = to_.graph[part].bytes.count;
    for (const Region& to : item.destinations) {
      if (to.tensor == part) tiers_.write(value.first(bytes), to.address);
    }
    value = value.subspan(bytes);
  }
  item.value = {};
}

void Relocation::hold_smallest() {
  Item* smallest = nullptr;
  for (Item& item : items_) {
    if (item.blockers == 0 || item.taken) continue;
    if (smallest == nullptr || size(item) < size(*smallest)) smallest = &item;
  }
  check(smallest != nullptr, "what waits for nobody can go");
  take(*smallest);
  ++waited_;
  release(*smallest);
}

void Relocation::release(Item& item) {
  for (const std::uint32_t blocked : item.blocks) {
    if (--items_[blocked].blockers == 0) ready_.push_back(blocked);
  }
  item.blocks.clear();
}

}  // namespace terrace
