#include "exec/relocation.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/check.hpp"
#include "exec/initialise.hpp"
#include "kernels/cpu/instantiate.hpp"

namespace terrace {
namespace {

bool same_place(Place a, Place b) { return a.tier == b.tier && a.offset == b.offset; }

bool is_among(std::span<const Place> places, Place place) {
  return std::any_of(places.begin(), places.end(), [&](Place one) { return same_place(one, place); });
}

}  // namespace

Relocation::Relocation(Side from, Side to, const OpenTiers& tiers) : from_(from), to_(to), tiers_(tiers) {
  std::unordered_map<std::string_view, TensorId> named;
  for (std::uint32_t i = 0; i < from.graph.tensors.size(); ++i) named[from.graph.tensors[i].name] = {i};
  for (std::uint32_t i = 0; i < to.graph.tensors.size(); ++i) {
    const Tensor& tensor = to.graph.tensors[i];
    if (!tensor.persistent || is_constant(tensor)) continue;
    const auto found = named.find(tensor.name);
    check(found != named.end(), "both graphs have the tensor");
    add(found->second, {i});
  }
  left_ = items_.size();
  find_blockers();
  find_spare();
}

void Relocation::find_spare() {
  if (!tiers_.is_open({0})) return;
  Tier& tier = tiers_[TierId{0}];
  std::vector<std::pair<std::uint64_t, std::uint64_t>> used{{tier.description().capacity.count, 0}};
  for (const Side& side : {from_, to_}) {
    for (std::uint32_t i = 0; i < side.graph.tensors.size(); ++i) {
      if (!side.graph.tensors[i].persistent) continue;
      for (const Place place : side.store.places({i})) {
        if (place.tier == TierId{0})
          used.emplace_back(place.offset, place.offset + side.graph.tensors[i].bytes.count);
      }
    }
  }
  std::sort(used.begin(), used.end());
  std::uint64_t end = 0;
  for (const auto& [first, last] : used) {
    if (first > end && first - end > spare_.size()) spare_ = {tier.memory() + end, first - end};
    end = std::max(end, round_up(Bytes{last}, Bytes{64}).count);
  }
}

std::span<std::byte> Relocation::room_for(Item& item, std::size_t bytes) {
  if (!item.value.empty()) return item.value;  // reading into it failed before
  if (bytes <= spare_.size() - spare_used_) {
    item.value = spare_.subspan(spare_used_, bytes);
    spare_used_ += bytes;
  } else {
    item.own.resize(bytes);
    item.value = item.own;
    held_ += Bytes{bytes};
    most_held_ = std::max(most_held_, held_);
  }
  return item.value;
}

void Relocation::give_back(Item& item) {
  held_ -= Bytes{item.own.size()};
  const bool is_last = !item.value.empty() && item.own.empty() &&
                       item.value.data() + item.value.size() == spare_.data() + spare_used_;
  if (is_last) spare_used_ -= item.value.size();
  item.own = {};
  item.value = {};
}

void Relocation::add(TensorId from, TensorId to) {
  Item item;
  item.from = from;
  item.to = to;
  const auto places = from_.store.places(from);
  check(!places.empty(), "the plan keeps the tensor between steps");
  item.source = places.front();
  for (const Place place : to_.store.places(to)) {
    const bool there = same_layout(item) && is_among(places, place);
    if (!there) item.destinations.push_back(place);
    if (there) item.source = place;  // where nothing else will be written
  }
  if (!item.destinations.empty()) items_.push_back(std::move(item));
}

void Relocation::find_blockers() {
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    const Place source = items_[i].source;
    for (std::uint32_t j = 0; j < items_.size(); ++j) {
      if (i == j || !goes_to(items_[j], source, source_size(items_[i]))) continue;
      items_[i].blocks.push_back(j);
      ++items_[j].blockers;
    }
  }
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    if (items_[i].blockers == 0) ready_.push_back(i);
  }
}

Bytes Relocation::touched(Place place, Bytes bytes) const {
  return tiers_.at(place) != nullptr ? bytes : round_up(bytes, tiers_[place.tier].description().granularity);
}

Bytes Relocation::source_size(const Item& item) const {
  return touched(item.source, from_.graph[item.from].bytes);
}

bool Relocation::goes_to(const Item& item, Place place, Bytes size) const {
  return std::any_of(item.destinations.begin(), item.destinations.end(), [&](Place to) {
    const std::uint64_t end = to.offset + touched(to, to_.graph[item.to].bytes).count;
    return to.tier == place.tier && to.offset < place.offset + size.count && place.offset < end;
  });
}

bool Relocation::same_layout(const Item& item) const {
  return from_.graph[item.from].layout == to_.graph[item.to].layout;
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

void Relocation::take(Item& item) {
  const Bytes bytes = from_.graph[item.from].bytes;
  if (same_layout(item)) {
    tiers_.read(item.source, room_for(item, bytes.count));
  } else {
    std::vector<std::byte> stored(bytes.count);
    tiers_.read(item.source, stored);
    const auto elements = static_cast<std::size_t>(to_.graph[item.to].shape.elements());
    std::vector<std::byte> row_major(elements * sizeof(float));
    cpu::to_row_major(from_.graph, item.from, stored.data(), row_major.data());
    stored = {};  // before the next copy is made
    const auto value = room_for(item, to_.graph[item.to].bytes.count);
    std::fill(value.begin(), value.end(), std::byte{0});  // as the padding of a layout is
    cpu::from_row_major(to_.graph, item.to, row_major.data(), value.data());
  }
  item.taken = true;
}

void Relocation::put(Item& item) {
  const Bytes bytes = from_.graph[item.from].bytes;
  std::byte* memory = tiers_.at(item.source);
  const bool in_place =
      !item.taken && memory != nullptr && same_layout(item) && !goes_to(item, item.source, source_size(item));
  if (!in_place && !item.taken) take(item);
  const std::span<const std::byte> value =
      in_place ? std::span<const std::byte>(memory, bytes.count) : std::span<const std::byte>(item.value);
  for (const Place place : item.destinations) tiers_.write(value, place);
  give_back(item);
}

void Relocation::hold_smallest() {
  Item* smallest = nullptr;
  for (Item& item : items_) {
    if (item.blockers == 0 || item.taken) continue;
    if (smallest == nullptr || from_.graph[item.from].bytes < from_.graph[smallest->from].bytes)
      smallest = &item;
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
